// Bundles from a server, by OPA's protocol, on real connections.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createContainer } from '../../src/container.ts';
import { getOrMake } from '../../src/lib/collections.ts';
import { archiveDigest } from '../../src/store/bundles/bundle-files.ts';
import { type BundleServer, startBundleServer } from '../support/bundle-server.ts';
import { startGateway, testConfig } from '../support/gateway.ts';
import { archiveOf, bundleFiles, signed, signingKey } from '../support/policy-bundles.ts';
import { send } from '../support/request.ts';

const key = signingKey();
/** Two signatures of the same files differ. */
const archives = new Map<string, Buffer>();
const archive = (revision: string): Buffer =>
  getOrMake(archives, revision, () => archiveOf(signed(bundleFiles(revision), key)));
let folder: string;
let server: BundleServer;

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'bundles-'));
  writeFileSync(path.join(folder, 'key.pem'), key.publicKey);
});

afterEach(async () => {
  await server.close();
  rmSync(folder, { recursive: true });
});

const environment = (more: Readonly<Record<string, string>> = {}) => ({
  POLICY_BUNDLE: server.url,
  POLICY_BUNDLE_PUBLIC_KEY: path.join(folder, 'key.pem'),
  POLICY_BUNDLE_POLL_SECONDS: '1',
  ...more,
});

async function revisionOf({ origin }: { readonly origin: string }) {
  const { policy } = Object((await send(origin, { path: '/ready' })).json);
  return [policy?.revision, policy?.refused];
}

const inForce = (listener: { readonly origin: string }, revision: string, refused?: string) =>
  expect.poll(() => revisionOf(listener), { timeout: 60_000 }).toEqual([revision, refused]);

const etagOf = (content: Uint8Array): string => `"${archiveDigest(content)}"`;

it('a server is asked with its token and the last ETag, and a new bundle serves', { timeout: 120_000 }, async () => {
  server = await startBundleServer(archive('v1'));
  const gateway = await startGateway(environment({ POLICY_BUNDLE_TOKEN: 'let-me-see-bundles' }));
  await inForce(gateway, 'v1');
  await expect.poll(() => server.requests.length, { timeout: 60_000 }).toBeGreaterThan(2);
  const asked = { prefer: 'modes=snapshot', token: 'Bearer let-me-see-bundles' };
  expect(server.requests.slice(0, 3)).toEqual([
    { ...asked, etag: undefined },
    { ...asked, etag: etagOf(archive('v1')) },
    { ...asked, etag: etagOf(archive('v1')) },
  ]);
  server.offer(archive('v2'));
  await inForce(gateway, 'v2');
  server.offer(null);
  await inForce(gateway, 'v2', 'unreachable');
  server.offer(archiveOf(bundleFiles('v3')));
  await inForce(gateway, 'v2', 'signature');
  server.offer(archive('v4'));
  await inForce(gateway, 'v4');
  await gateway.close();
});

it('a server that can holds the request until there is news', { timeout: 120_000 }, async () => {
  server = await startBundleServer(archive('v1'), { holds: true });
  const gateway = await startGateway(
    environment({ POLICY_BUNDLE_POLL_SECONDS: '1', POLICY_BUNDLE_LONG_POLL_SECONDS: '30' }),
  );
  await expect.poll(() => server.requests.length, { timeout: 60_000 }).toBe(2);
  server.offer(archive('v2'));
  await inForce(gateway, 'v2');
  await expect.poll(() => server.requests.length, { timeout: 60_000 }).toBe(3);
  expect(server.requests.map(({ prefer, etag }) => [prefer, etag])).toEqual([
    ['modes=snapshot;wait=30', undefined],
    ['modes=snapshot;wait=30', etagOf(archive('v1'))],
    ['modes=snapshot;wait=30', etagOf(archive('v2'))],
  ]);
  // A request that is held keeps nobody from stopping.
  await gateway.close();
});

it('a server that is gone is not needed after a restart', { timeout: 120_000 }, async () => {
  server = await startBundleServer(archive('v1'));
  const gateway = await startGateway(environment());
  await gateway.container.close();
  const port = Number(new URL(server.url).port);
  await server.close();
  const again = await createContainer(testConfig(gateway.dataDir, environment()));
  await inForce({ origin: again.gateway.origin }, 'v1', 'unreachable');
  server = await startBundleServer(archive('v2'), { port });
  await inForce({ origin: again.gateway.origin }, 'v2');
  await again.close();
  gateway.db.close();
  rmSync(gateway.dataDir, { recursive: true, force: true });
});

it('a server that is not there keeps the first start from serving with another policy', {
  timeout: 120_000,
}, async () => {
  server = await startBundleServer(null);
  await expect(startGateway(environment())).rejects.toThrow(
    'POLICY_BUNDLE: The bundle server answered with status 500.',
  );
});
