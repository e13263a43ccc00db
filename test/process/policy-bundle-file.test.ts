// Bundles from a file: which one serves, at the start and afterwards, and the outcome of the others.
import { mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Container, createContainer } from '../../src/container.ts';
import { readBundleState, rolledBack, standingIn, writeBundleState } from '../../src/store/bundles/bundle-files.ts';
import { chat, hello } from '../support/chat.ts';
import { metricsOf, valuesOf } from '../support/exposition.ts';
import { startGateway, type TestGateway, testConfig } from '../support/gateway.ts';
import { archiveOf, bundleFiles, compiled, signed, signingKey } from '../support/policy-bundles.ts';
import { send } from '../support/request.ts';

const key = signingKey();
let folder: string;
let file: string;
let environment: Readonly<Record<string, string>>;

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'bundles-'));
  file = path.join(folder, 'bundle.tar.gz');
  writeFileSync(path.join(folder, 'key.pem'), key.publicKey);
  environment = {
    POLICY_BUNDLE: file,
    POLICY_BUNDLE_PUBLIC_KEY: path.join(folder, 'key.pem'),
    POLICY_BUNDLE_POLL_SECONDS: '1',
  };
});

afterEach(() => rmSync(folder, { recursive: true }));

/** Each revision has data of its own, so that its digest tells it from the others. */
const archive = (revision: string): Buffer =>
  archiveOf(signed(bundleFiles(revision, { 'data.json': JSON.stringify({ revision }) }), key));
const offer = (content: Uint8Array): void => writeFileSync(file, content);

const readyOf = async ({ origin }: { readonly origin: string }) => (await send(origin, { path: '/ready' })).json;
const revisionOf = async (listener: { readonly origin: string }) => {
  const { policy } = Object(await readyOf(listener));
  return [policy?.revision, policy?.refused];
};

const inForce = (listener: { readonly origin: string }, revision: string, refused?: string) =>
  expect.poll(() => revisionOf(listener), { timeout: 60_000 }).toEqual([revision, refused]);

const stateOf = (gateway: TestGateway) => {
  const state = readBundleState(gateway.dataDir);
  if (state === undefined) throw new Error('no bundle was ever in force');
  return state;
};

const historyOf = (gateway: TestGateway) =>
  stateOf(gateway).history.map(({ what, revision, code }) => [what, revision, code]);

describe('a bundle in a file', { timeout: 120_000 }, () => {
  it('serves from the start, and another one as soon as it is there', async () => {
    offer(archive('v1'));
    const gateway = await startGateway(environment);
    await inForce(gateway, 'v1');
    const before = await chat(gateway, hello());
    offer(archive('v2'));
    await inForce(gateway, 'v2');
    const after = await chat(gateway, hello());
    const revisions = [before, after].map(({ headers }) => headers['x-policy-revision']);
    expect(revisions.map((revision) => String(revision).slice(0, 12))).toEqual(
      [stateOf(gateway).previous, stateOf(gateway).active].map((bundle) => bundle?.digest.slice(0, 12)),
    );
    expect(new Set(revisions).size).toBe(2);
    expect(historyOf(gateway)).toEqual([
      ['activated', 'v2', undefined],
      ['activated', 'v1', undefined],
    ]);
    await gateway.close();
  });

  it('that is refused leaves the one before in force, is reported, and is tried once', async () => {
    offer(archive('v1'));
    const gateway = await startGateway(environment);
    offer(archiveOf(bundleFiles('v2')));
    await inForce(gateway, 'v1', 'signature');
    offer(archiveOf(signed(bundleFiles('v3', { 'policy.wasm': compiled('permit-all') }), key)));
    await inForce(gateway, 'v1', 'self_test');
    offer(archive('v4'));
    await inForce(gateway, 'v4');
    expect(historyOf(gateway)).toEqual([
      ['activated', 'v4', undefined],
      ['refused', null, 'self_test'],
      ['refused', null, 'signature'],
      ['activated', 'v1', undefined],
    ]);
    const { json } = await send(gateway.management, {
      path: '/v1/master/policy/bundle',
      headers: [['authorization', `Bearer ${gateway.firstRun.masterKey}`]],
    });
    const { policy, history } = Object(json);
    expect(policy).toMatchObject({ revision: 'v4', origin: 'bundle', refusal: null });
    expect(history[2]).toEqual({
      at: expect.any(String),
      what: 'refused',
      archive: expect.any(String),
      revision: null,
      code: 'signature',
      message: 'It is not signed.',
    });
    const metrics = await metricsOf(gateway);
    expect(valuesOf(metrics, 'policy_activations_total')).toEqual({ '': 2 });
    expect(valuesOf(metrics, 'policy_refusals_total')).toEqual({
      unreachable: 0,
      archive: 0,
      signature: 1,
      policy: 0,
      self_test: 1,
      fixtures: 0,
      rollback: 0,
      time_limit: 0,
    });
    await gateway.close();
  });

  it('that disappears is reported, also to commands, until it is there again', async () => {
    offer(archive('v1'));
    const gateway = await startGateway(environment);
    renameSync(file, `${file}.away`);
    await inForce(gateway, 'v1', 'unreachable');
    const unreachable = { at: expect.any(String), code: 'unreachable', message: `There is no file ${file}.` };
    expect(stateOf(gateway).refusal).toEqual(unreachable);
    renameSync(`${file}.away`, file);
    await inForce(gateway, 'v1');
    expect(stateOf(gateway).refusal).toBeUndefined();
    offer(archiveOf(bundleFiles('v2')));
    await inForce(gateway, 'v1', 'signature');
    const unsigned = { at: expect.any(String), code: 'signature', message: 'It is not signed.' };
    expect(stateOf(gateway).refusal).toEqual(unsigned);
    // What the source had before it was gone is refused for the same reason when it is back.
    renameSync(file, `${file}.away`);
    await inForce(gateway, 'v1', 'unreachable');
    renameSync(`${file}.away`, file);
    await inForce(gateway, 'v1', 'signature');
    expect(stateOf(gateway).refusal).toEqual(unsigned);
    await gateway.close();
  });

  it('is set aside by a start without the setting, until one with it', async () => {
    offer(archive('v1'));
    const gateway = await startGateway(environment);
    await gateway.container.close();
    expect(standingIn(gateway.dataDir)).toHaveProperty('bundle');
    const without = await createContainer(testConfig(gateway.dataDir, {}));
    await without.close();
    expect(standingIn(gateway.dataDir)).toEqual({ installation: { since: expect.any(String) } });
    const again = await restarted(gateway);
    expect(standingIn(gateway.dataDir)).toMatchObject({ bundle: { active: { revision: 'v1' } } });
    await again.close();
    await closed(gateway);
  });

  it('that was in force serves after a restart for which the file is broken', async () => {
    offer(archive('v1'));
    const gateway = await startGateway(environment);
    await gateway.container.close();
    offer(archive('v1').subarray(0, 1000));
    const again = await restarted(gateway);
    await inForce(again.gateway, 'v1', 'archive');
    await again.close();
    await closed(gateway);
  });

  it('is needed: without one that may serve there is no start', async () => {
    offer(archiveOf(bundleFiles('v1')));
    await expect(startGateway(environment)).rejects.toThrow('POLICY_BUNDLE: It is not signed.');
    rmSync(file);
    await expect(startGateway(environment)).rejects.toThrow(`POLICY_BUNDLE: There is no file ${file}.`);
  });

  it('goes back by one step, holds off the one that was left, and takes the next one', async () => {
    offer(archive('v1'));
    const gateway = await startGateway(environment);
    offer(archive('v2'));
    await inForce(gateway, 'v2');
    const rollback = () => writeBundleState(gateway.dataDir, rolledBack(stateOf(gateway), '2026-11-25T00:00:00.000Z'));
    rollback();
    await inForce(gateway, 'v1');
    await gateway.container.close();
    const again = await restarted(gateway);
    await inForce(again.gateway, 'v1');
    rollback();
    await inForce(again.gateway, 'v2');
    rollback();
    await inForce(again.gateway, 'v1');
    offer(archive('v3'));
    await inForce(again.gateway, 'v3');
    expect(historyOf(gateway)).toEqual([
      ['activated', 'v3', undefined],
      ['rolled_back', 'v1', undefined],
      ['rolled_back', 'v2', undefined],
      ['rolled_back', 'v1', undefined],
      ['activated', 'v2', undefined],
      ['activated', 'v1', undefined],
    ]);
    // Only what can be gone back to is kept, and the record of what is served.
    const kept = readdirSync(path.join(gateway.dataDir, 'policy')).filter((name) => name !== 'served.json');
    expect(kept).toHaveLength(3);
    await again.close();
    await closed(gateway);
  });

  it('follows each rollback, though what is known of the source changes at the same time', async () => {
    offer(archive('v1'));
    const gateway = await startGateway(environment);
    offer(archive('v2'));
    await inForce(gateway, 'v2');
    for (const revision of ['v1', 'v2', 'v1', 'v2', 'v1', 'v2']) {
      if (revision === 'v1') renameSync(file, `${file}.away`);
      else renameSync(`${file}.away`, file);
      writeBundleState(gateway.dataDir, rolledBack(stateOf(gateway), '2026-11-25T00:00:00.000Z'));
      await expect.poll(async () => (await revisionOf(gateway))[0], { timeout: 60_000 }).toBe(revision);
      await expect
        .poll(() => stateOf(gateway).refusal?.code, { timeout: 60_000 })
        .toBe(revision === 'v1' ? 'unreachable' : undefined);
    }
    await gateway.close();
  });
});

/** The gateway once more on its data. */
async function restarted(gateway: TestGateway): Promise<Pick<Container, 'gateway' | 'close'>> {
  return createContainer(testConfig(gateway.dataDir, environment));
}

async function closed(gateway: TestGateway): Promise<void> {
  gateway.db.close();
  rmSync(gateway.dataDir, { recursive: true, force: true });
}
