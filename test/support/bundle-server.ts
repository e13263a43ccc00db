/** A bundle server as OPA's protocol has it, over plain HTTP on loopback: ETags, and requests that are held until there is news. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { archiveDigest } from '../../src/store/bundles/bundle-files.ts';

export interface BundleServer {
  readonly url: string;
  /** The headers that matter, of each request. */
  readonly requests: {
    readonly prefer?: string | undefined;
    readonly etag?: string | undefined;
    readonly token?: string | undefined;
  }[];
  /** What it hands out from now on; held requests are answered. Null: 500. */
  offer(archive: Uint8Array | null): void;
  close(): Promise<void>;
}

export async function startBundleServer(
  first: Uint8Array | null,
  { holds = false, port = 0 } = {},
): Promise<BundleServer> {
  let archive = first;
  const requests: BundleServer['requests'] = [];
  const waiting = new Set<() => void>();

  function answer(request: IncomingMessage, response: ServerResponse): void {
    const type = holds ? 'application/vnd.openpolicyagent.bundles' : 'application/gzip';
    if (archive === null) {
      response.writeHead(500).end();
      return;
    }
    const etag = `"${archiveDigest(archive)}"`;
    if (request.headers['if-none-match'] === etag) response.writeHead(304, { etag }).end();
    else response.writeHead(200, { etag, 'content-type': type }).end(archive);
  }

  const server = createServer((request, response) => {
    const { prefer, 'if-none-match': etag, authorization: token } = request.headers;
    requests.push({ prefer: prefer?.toString(), etag, token });
    const seconds = Number(/wait=(\d+)/.exec(String(prefer))?.[1] ?? 0);
    const isNews = archive === null || etag !== `"${archiveDigest(archive)}"`;
    if (!holds || seconds === 0 || isNews) {
      answer(request, response);
      return;
    }
    const tell = (): void => {
      clearTimeout(timer);
      waiting.delete(tell);
      answer(request, response);
    };
    const timer = setTimeout(tell, seconds * 1000);
    waiting.add(tell);
    response.on('close', () => {
      clearTimeout(timer);
      waiting.delete(tell);
    });
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return {
    url: `http://127.0.0.1:${address.port}/bundles/portcullis.tar.gz`,
    requests,
    offer(next) {
      archive = next;
      for (const tell of [...waiting]) tell();
    },
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
