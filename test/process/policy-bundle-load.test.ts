// Bundles that must be refused, one after another, while callers are served: no call fails, and none is decided by another policy.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, it } from 'vitest';
import { readBundleState } from '../../src/store/bundles/bundle-files.ts';
import { chat, hello } from '../support/chat.ts';
import { startGateway } from '../support/gateway.ts';
import { hostileModule } from '../support/hostile-modules.ts';
import {
  archiveOf,
  bundleFiles,
  compiled,
  moduleThat,
  NEVER_RETURN,
  signed,
  signingKey,
  TRAP,
} from '../support/policy-bundles.ts';
import { send } from '../support/request.ts';

const CALLERS = 4;
const key = signingKey();
const archive = (revision: string, more: Parameters<typeof bundleFiles>[1] = {}): Buffer =>
  archiveOf(signed(bundleFiles(revision, { 'data.json': JSON.stringify({ revision }), ...more }), key));

const FAILING = `
name: Swift may not be called
given: { catalog: { models: { swift-1: { providers: { acme: {} } } } } }
requests: { model: swift-1 }
expect: [{ model: swift-1, deny: any }]
`;

const REFUSED: readonly (readonly [code: string, archive: Buffer])[] = [
  ['fixtures', archive('r1', { 'fixtures/swift.yaml': FAILING })],
  ['signature', archiveOf(signed(bundleFiles('r2'), signingKey()))],
  ['policy', archive('r3', { 'policy.wasm': compiled('host-builtin') })],
  ['policy', archive('r4', { 'policy.wasm': moduleThat(TRAP) })],
  ['time_limit', archive('r5', { 'policy.wasm': moduleThat(NEVER_RETURN) })],
  ['self_test', archive('r6', { 'policy.wasm': compiled('permit-all') })],
  ['self_test', archive('r7', { 'policy.wasm': compiled('endless') })],
  ['self_test', archive('r9', { 'policy.wasm': hostileModule('all memory while it is loaded') })],
  ['archive', archive('r8').subarray(0, 20_000)],
];

it('every bundle that may not serve is refused while callers are served', { timeout: 180_000 }, async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'bundles-'));
  const file = path.join(folder, 'bundle.tar.gz');
  writeFileSync(path.join(folder, 'key.pem'), key.publicKey);
  writeFileSync(file, archive('v1'));
  const gateway = await startGateway({
    POLICY_BUNDLE: file,
    POLICY_BUNDLE_PUBLIC_KEY: path.join(folder, 'key.pem'),
    POLICY_BUNDLE_POLL_SECONDS: '1',
    RATE_LIMIT_CHAT_PER_MINUTE: 'off',
  });
  const seen = new Set<string>();
  let [isOver, calls] = [false, 0];
  const call = async (): Promise<void> => {
    while (!isOver) {
      const { status, headers } = await chat(gateway, hello());
      seen.add(`${status} ${headers['x-policy-revision']}`);
      calls += 1;
    }
  };
  const callers = Array.from({ length: CALLERS }, call);
  const history = () => readBundleState(gateway.dataDir)?.history ?? [];
  for (const [index, [code, content]] of REFUSED.entries()) {
    writeFileSync(file, content);
    await expect.poll(() => history()[0]?.code, { timeout: 60_000 }).toBe(code);
    await expect.poll(() => history().length, { timeout: 60_000 }).toBeGreaterThanOrEqual(index + 2);
  }
  expect(seen.size).toBe(1);
  writeFileSync(file, archive('v2'));
  const revision = async () => Object((await send(gateway.origin, { path: '/ready' })).json).policy?.revision;
  await expect.poll(revision, { timeout: 60_000 }).toBe('v2');
  await expect.poll(() => seen.size, { timeout: 60_000 }).toBe(2);
  isOver = true;
  await Promise.all(callers);
  expect([...seen].map((each) => each.slice(0, 4))).toEqual(['200 ', '200 ']);
  expect(calls).toBeGreaterThan(100);
  await gateway.close();
  rmSync(folder, { recursive: true });
});
