import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ManualClock } from '../../../src/domain/time.ts';
import { Turns } from '../../../src/domain/turns.ts';
import { readBundle } from '../../../src/policy/bundle.ts';
import { databasePath } from '../../../src/store/db/data-dir.ts';
import { createStore, type Store } from '../../../src/store/store.ts';
import { type AnalysisJob, type Analyst, createAnalyst } from '../../../src/workbench/analysis/analyst.ts';
import { catalog, ID, START, seedTenants } from '../../admin/tenants.ts';

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
