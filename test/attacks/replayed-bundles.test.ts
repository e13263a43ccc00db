// Bundles that behave in their trial and misbehave afterwards: they end the analysis, and nothing else. And old bundles, properly
// signed, that a source offers again: only an operator goes back.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Container, createContainer } from '../../src/container.ts';
import { ManualClock } from '../../src/domain/time.ts';
import { Turns } from '../../src/domain/turns.ts';
import { SharedProgress } from '../../src/lib/threads.ts';
import { readBundle } from '../../src/policy/bundle.ts';
import { readBundleState, rolledBack, writeBundleState } from '../../src/store/bundles/bundle-files.ts';
import { databasePath } from '../../src/store/db/data-dir.ts';
import { createStore, type Store } from '../../src/store/store.ts';
import { type Analyst, createAnalyst } from '../../src/workbench/analysis/analyst.ts';
import { readWorld } from '../../src/workbench/world/world.ts';
import { catalog, ID, START, seedTenants, startMs } from '../admin/tenants.ts';
import { metricsOf, valuesOf } from '../support/exposition.ts';
import { startGateway, type TestGateway, testConfig } from '../support/gateway.ts';
import { logDecision } from '../support/logged-decisions.ts';
import {
  archiveOf,
  bundleFiles,
  claimsOf,
  moduleThat,
  NEVER_RETURN,
  numbered,
  signed,
  signingKey,
} from '../support/policy-bundles.ts';
import { send } from '../support/request.ts';

const clock = new ManualClock(START);
let folder: string;
let store: Store;

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'portcullis-'));
  store = createStore({ path: databasePath(folder), clock, create: true });
  await store.write(seedTenants);
});
afterAll(() => {
  store.close();
  rmSync(folder, { recursive: true });
});

async function withAnalyst(limitMs: number, work: (analyst: Analyst) => Promise<void>) {
  const installation = { catalog, servedProviders: ['sandbox'], bundle: readBundle, clock };
  const analyst = createAnalyst({ databasePath: databasePath(folder), ...installation, limitMs, turns: new Turns() });
  try {
    await work(analyst);
    const { organization: organizationId, developerKey: keyId } = ID;
    // The next is served.
    await analyst.analyse({ kind: 'access', organizationId, keyId, withoutCredential: false });
  } finally {
    await analyst.close();
  }
}

describe('an analysis by a bundle of others', { timeout: 180_000 }, () => {
  const late = readFileSync(new URL('../fixtures/policy/late.tar.gz', import.meta.url));

  /** The report on a call of a model, or what was thrown. @param leaveMs after which the client leaves */
  async function replayBy(
    analyst: Analyst,
    model: string,
    { archive = late, leaveMs = 60_000 }: { archive?: Buffer; leaveMs?: number } = {},
  ): Promise<unknown> {
    const { organization: organizationId } = ID;
    const filter = { organizationId, model, from: startMs, to: startMs + 1 };
    const job = { kind: 'replay', organizationId, judged: { by: 'current' }, filter, groupBy: [] } as const;
    const waiting = { progress: new SharedProgress(), signal: AbortSignal.timeout(leaveMs) };
    return analyst.analyseBy(archive, job, waiting).then(
      ({ json }) => JSON.parse(new TextDecoder().decode(json)),
      (error: unknown) => error,
    );
  }

  beforeAll(() =>
    store.write((db) => {
      const world = readWorld(db, { catalog, servedProviders: new Set(['sandbox']) });
      for (const model of ['sandbox-slow', 'sandbox-paid', 'sandbox-free']) {
        logDecision(db, world, { keyId: ID.ownerKey, model, time: startMs });
      }
    }),
  );

  it('that takes all memory, or never ends, after its trial: the next is served', async () => {
    await withAnalyst(30_000, async (analyst) => {
      const results = await Promise.all([
        replayBy(analyst, 'sandbox-paid'),
        replayBy(analyst, 'sandbox-free'),
        replayBy(analyst, 'sandbox-slow'),
      ]);
      expect(results).toEqual([
        expect.objectContaining({ decisions: 1, unjudged: [expect.objectContaining({ reason: 'failed' })] }),
        expect.objectContaining({ status: 504, code: 'analysis_timeout' }),
        expect.objectContaining({ decisions: 1, changed: expect.objectContaining({ denied: 1 }) }),
      ]);
    });
  });

  it('ends when the client leaves: during the trial, after it, and before it', async () => {
    await withAnalyst(60_000, async (analyst) => {
      const endless = archiveOf({ ...bundleFiles('v1'), 'policy.wasm': moduleThat(NEVER_RETURN) });
      const results = await Promise.all([
        replayBy(analyst, 'sandbox-slow', { archive: endless, leaveMs: 2000 }),
        replayBy(analyst, 'sandbox-free', { leaveMs: 8000 }),
        replayBy(analyst, 'sandbox-slow', { leaveMs: 0 }),
      ]);
      const left = expect.objectContaining({ status: 499, code: 'client_closed_request' });
      expect(results).toEqual([left, left, left]);
    });
  });
});

describe('the source of signed bundles', { timeout: 180_000 }, () => {
  const key = signingKey();
  let folder: string;
  let file: string;
  let environment: Readonly<Record<string, string>>;
  let gateway: TestGateway;
  let running: Pick<Container, 'gateway' | 'management' | 'close'>;

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
  afterEach(async () => {
    gateway.db.close();
    await running.close();
    for (const each of [folder, gateway.dataDir]) rmSync(each, { recursive: true });
  });

  /** @param number undefined: the signature has none */
  function archive(revision: string, number?: unknown): Buffer {
    const files = bundleFiles(revision, { 'data.json': JSON.stringify({ revision }) });
    return archiveOf(signed(files, key, number === undefined ? claimsOf(files) : numbered(files, number)));
  }
  const offer = (content: Uint8Array): void => writeFileSync(file, content);

  async function begin(first: Uint8Array): Promise<void> {
    offer(first);
    gateway = await startGateway(environment);
    running = gateway.container;
  }
  async function restart(): Promise<void> {
    await running.close();
    running = await createContainer(testConfig(gateway.dataDir, environment));
  }
  function rollBack(): void {
    const state = readBundleState(gateway.dataDir);
    if (state === undefined) throw new Error('no bundle was in force');
    writeBundleState(gateway.dataDir, rolledBack(state, '2026-11-25T00:00:00.000Z'));
  }
  const standing = async (): Promise<unknown[]> => {
    const { json } = await send(running.gateway.origin, { path: '/ready' });
    const { policy } = Object(json);
    return [policy?.revision, policy?.refused];
  };
  const inForce = (revision: string, refused?: string) =>
    expect.poll(standing, { timeout: 60_000 }).toEqual([revision, refused]);
  const reason = (): string | undefined => readBundleState(gateway.dataDir)?.refusal?.message;

  const ONLY = 'Only `portcullis policy bundle rollback` goes back.';

  it('cannot go back to a lower number, not even after a restart, and what it did is counted', async () => {
    await begin(archive('v1', 1));
    offer(archive('v3', 3));
    await inForce('v3');
    offer(archive('v2', 2));
    await inForce('v3', 'rollback');
    expect(reason()).toBe(`Its number, 2, is lower than 3, which was in force. ${ONLY}`);
    expect(valuesOf(await metricsOf(gateway), 'policy_refusals_total')).toMatchObject({ rollback: 1 });

    await restart();
    await inForce('v3', 'rollback');
    offer(archive('v1', 1));
    await inForce('v3', 'rollback');
    await expect.poll(reason, { timeout: 60_000 }).toBe(`Its number, 1, is lower than 3, which was in force. ${ONLY}`);
    offer(archive('v4', 4));
    await inForce('v4');
  });

  it('cannot offer another policy under the number that is in force, but the same one signed again', async () => {
    await begin(archive('v1', 5));
    offer(archive('other', 5));
    await inForce('v1', 'rollback');
    expect(reason()).toBe(`Number 5 was in force with other content. ${ONLY}`);
    offer(archive('v1', 5)); // ECDSA gives another signature each time.
    await inForce('v1');
  });

  it('cannot leave the number out once there was one, nor state one that is no number', async () => {
    await begin(archive('v1', 5));
    offer(archive('v2'));
    await inForce('v1', 'rollback');
    expect(reason()).toBe(`Its signature has no number, and number 5 was in force. ${ONLY}`);
    for (const number of [0, 1e300, '6', null]) {
      offer(archive(`number ${JSON.stringify(number)}`, number));
      await inForce('v1', 'signature');
      offer(archive('v2'));
      await inForce('v1', 'rollback');
    }
  });

  it('cannot offer again what was in force without a number', async () => {
    await begin(archive('v1'));
    offer(archive('v2'));
    await inForce('v2');
    offer(archive('v1'));
    await inForce('v2', 'rollback');
    expect(reason()).toBe(`It was in force before, and its signature has no number. ${ONLY}`);
    await restart();
    await inForce('v2', 'rollback');
    offer(archive('v3'));
    await inForce('v3');
  });

  it('cannot go back while the server was started without the setting for a while', async () => {
    await begin(archive('v2', 2));
    await running.close();
    running = await createContainer(testConfig(gateway.dataDir));
    await running.close();
    offer(archive('v1', 1));
    running = await createContainer(testConfig(gateway.dataDir, environment));
    await inForce('v2', 'rollback');
  });

  it('is followed from the number to which an operator went back', async () => {
    await begin(archive('v1', 1));
    offer(archive('v9', 9_000_000_000_000_000));
    await inForce('v9');
    offer(archive('v2', 2));
    await inForce('v9', 'rollback');
    rollBack();
    await inForce('v2');
    offer(archive('v1', 1));
    await inForce('v2', 'rollback');
  });
});
