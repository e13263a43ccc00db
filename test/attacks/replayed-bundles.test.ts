// Bundles that behave in their trial and misbehave afterwards: they end the analysis, and nothing else.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ManualClock } from '../../src/domain/time.ts';
import { Turns } from '../../src/domain/turns.ts';
import { SharedProgress } from '../../src/lib/shared-progress.ts';
import { readBundle } from '../../src/policy/bundle.ts';
import { databasePath } from '../../src/store/db/data-dir.ts';
import { createStore, type Store } from '../../src/store/store.ts';
import { type Analyst, createAnalyst } from '../../src/workbench/analysis/analyst.ts';
import { readWorld } from '../../src/workbench/world/world.ts';
import { catalog, ID, START, seedTenants, startMs } from '../admin/tenants.ts';
import { logDecision } from '../support/logged-decisions.ts';
import { archiveOf, bundleFiles, moduleThat, NEVER_RETURN } from '../support/policy-bundles.ts';

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
