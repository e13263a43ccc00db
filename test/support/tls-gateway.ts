// A gateway under a PUBLIC_URL of https, behind a proxy that ends TLS.
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import path from 'node:path';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { forwardTo } from './forward.ts';
import { startGateway, type TestGateway } from './gateway.ts';

const read = (name: string): string => readFileSync(path.join(import.meta.dirname, '../fixtures/tls', name), 'utf8');

/** A key and its certificate for `gateway.example` and `localhost`, for tests alone. */
export const TLS = { key: read('key.pem'), cert: read('cert.pem') } as const;

/**
 * Lets every client of this process trust the certificate, until the function that it returns is called: the files of the quick
 * suite share a process.
 */
export function trustTls(): () => void {
  const before = getCACertificates('default');
  setDefaultCACertificates([...before, TLS.cert]);
  return () => setDefaultCACertificates(before);
}

/** `origin` is where clients reach it: the proxy. */
export interface TlsGateway extends TestGateway {
  /** Where the gateway itself listens. */
  readonly inner: string;
}

/** The address of the caller, as the proxy tells it. */
export const CALLER = '203.0.113.7';

/**
 * @param name by which clients reach the proxy
 * @param rewritesHost the proxy names the gateway's own address as `Host`, as some do by default
 */
export async function startTlsGateway(name: string, { rewritesHost = false } = {}): Promise<TlsGateway> {
  const distrust = trustTls();
  let inner = '';
  const proxy = createServer(TLS, (request, response) => {
    const host = rewritesHost ? { host: new URL(inner).host } : {};
    forwardTo(() => inner, { 'x-forwarded-for': CALLER, 'x-forwarded-proto': 'https', ...host })(request, response);
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  const address = proxy.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  const origin = `https://${name}:${address.port}`;
  const gateway = await startGateway({ PUBLIC_URL: origin, TRUSTED_PROXIES: '127.0.0.1/32' });
  inner = gateway.origin;
  return {
    ...gateway,
    origin,
    inner,
    async close() {
      proxy.close();
      proxy.closeAllConnections();
      await gateway.close();
      distrust();
    },
  };
}
