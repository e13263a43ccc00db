import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ManualClock } from '../../../src/domain/time.ts';
import { Turns } from '../../../src/domain/turns.ts';
import { SharedProgress } from '../../../src/lib/shared-progress.ts';
import { readBundle } from '../../../src/policy/bundle.ts';
import { databasePath } from '../../../src/store/db/data-dir.ts';
import { createStore, type Store } from '../../../src/store/store.ts';
import type { AnalysisJob } from '../../../src/workbench/analysis/analysis-job.ts';
import { type Analyst, createAnalyst } from '../../../src/workbench/analysis/analyst.ts';
import { readWorld } from '../../../src/workbench/world/world.ts';
import { catalog, ID, START, seedTenants, startMs } from '../../admin/tenants.ts';
import { logDecision } from '../../support/logged-decisions.ts';
import { archiveOf, bundleFiles, moduleThat, NEVER_RETURN } from '../../support/policy-bundles.ts';

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

const installation = { catalog, servedProviders: ['sandbox'], bundle: readBundle, clock };
const access: AnalysisJob = {
  kind: 'access',
  organizationId: ID.organization,
  keyId: ID.developerKey,
  withoutCredential: false,
};

async function withAnalyst(
  { maxWaiting = 8, ...limits }: { limitMs?: number; maxWaiting?: number },
  work: (analyst: Analyst) => Promise<void>,
) {
  const turns = new Turns({ maxWaiting });
  const analyst = createAnalyst({ databasePath: databasePath(folder), ...installation, ...limits, turns });
  try {
    await work(analyst);
  } finally {
    await analyst.close();
  }
}

const settled = async (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => 'done',
    (error: unknown) => error,
  );

it('does one analysis after the other, and refuses those that would wait behind too many', async () => {
  await withAnalyst({ maxWaiting: 1 }, async (analyst) => {
    const results = await Promise.all([1, 2, 3].map(() => settled(analyst.analyse(access))));
    const refused = expect.objectContaining({ status: 503, code: 'overloaded', headers: { 'retry-after': '5' } });
    expect(results).toEqual(['done', 'done', refused]);
    expect(await settled(analyst.analyse(access))).toBe('done');
  });
});

it('ends an analysis that takes too long', async () => {
  await withAnalyst({ limitMs: 0 }, async (analyst) => {
    expect(await settled(analyst.analyse(access))).toMatchObject({ status: 504, code: 'analysis_timeout' });
  });
});

it('sees rules as they are when it is asked, whichever process wrote them', async () => {
  await withAnalyst({}, async (analyst) => {
    const revision = async () => (await analyst.analyse(access)).policyRevision.split('.')[1];
    expect(await revision()).toBe('0');
    await store.write((db) => db.connection.prepare('UPDATE organizations SET ruleRevision = 7').run());
    expect(await revision()).toBe('7');
  });
});

it('starts again after it broke, and tells no one how', async () => {
  const missing = path.join(folder, 'none.sqlite');
  const analyst = createAnalyst({ databasePath: missing, ...installation, turns: new Turns() });
  expect(await settled(analyst.analyse(access))).toMatchObject({ message: 'The thread ended without an answer.' });
  expect(await settled(analyst.analyse(access))).toMatchObject({ message: 'The thread ended without an answer.' });
  await analyst.close();
  expect(await settled(analyst.analyse(access))).toMatchObject({ status: 503 });
});

describe('an analysis by a bundle of others', { timeout: 60_000 }, () => {
  const late = readFileSync(new URL('../../fixtures/policy/late.tar.gz', import.meta.url));

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
    await withAnalyst({ limitMs: 10_000 }, async (analyst) => {
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
      expect(await settled(analyst.analyse(access))).toBe('done');
    });
  });

  it('ends when the client leaves: during the trial, after it, and before it', async () => {
    await withAnalyst({}, async (analyst) => {
      const endless = archiveOf({ ...bundleFiles('v1'), 'policy.wasm': moduleThat(NEVER_RETURN) });
      const results = await Promise.all([
        replayBy(analyst, 'sandbox-slow', { archive: endless, leaveMs: 2000 }),
        replayBy(analyst, 'sandbox-free', { leaveMs: 8000 }),
        replayBy(analyst, 'sandbox-slow', { leaveMs: 0 }),
      ]);
      const left = expect.objectContaining({ status: 499, code: 'client_closed_request' });
      expect(results).toEqual([left, left, left]);
      expect(await settled(analyst.analyse(access))).toBe('done');
    });
  });
});
