import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ManualClock } from '../../../src/domain/time.ts';
import { Turns } from '../../../src/domain/turns.ts';
import { readBundle } from '../../../src/policy/bundle.ts';
import { databasePath } from '../../../src/store/db/data-dir.ts';
import { createStore, type Store } from '../../../src/store/store.ts';
import { type Analyst, createAnalyst, streamReplay } from '../../../src/workbench/analysis/analyst.ts';
import { readWorld } from '../../../src/workbench/world/world.ts';
import { catalog, ID, START, seedTenants, startMs } from '../../admin/tenants.ts';
import { logDecision } from '../../support/logged-decisions.ts';

const DECISIONS = 3000;
const clock = new ManualClock(START);
let folder: string;
let store: Store;
let analyst: Analyst;

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'portcullis-'));
  store = createStore({ path: databasePath(folder), clock, create: true });
  await store.write(seedTenants);
  await store.write((db) => {
    const world = readWorld(db, { catalog, servedProviders: new Set(['sandbox']) });
    for (let place = 0; place < DECISIONS; place += 1) {
      const address = `10.0.${place >> 8}.${place & 255}`;
      logDecision(db, world, { keyId: ID.ownerKey, model: 'sandbox-free', address, time: startMs + place });
    }
  });
  const turns = new Turns();
  analyst = createAnalyst({
    databasePath: databasePath(folder),
    catalog,
    servedProviders: ['sandbox'],
    bundle: readBundle,
    clock,
    turns,
  });
});
afterAll(async () => {
  await analyst.close();
  store.close();
  rmSync(folder, { recursive: true });
});

const filter = { organizationId: ID.organization, from: startMs, to: startMs + DECISIONS };
const { organization: organizationId } = ID;
const job = { kind: 'replay', organizationId, judged: { by: 'recorded' }, filter, groupBy: [] } as const;

async function all(signal: AbortSignal) {
  const events = [];
  for await (const event of streamReplay((progress) => analyst.analyse(job, progress), signal)) events.push(event);
  return events;
}

it('ends with the report, and before that tells growing numbers', async () => {
  const events = await all(new AbortController().signal);
  const last = events.at(-1);
  if (last === undefined || !('json' in last)) throw new Error('no report');
  expect(JSON.parse(new TextDecoder().decode(last.json))).toMatchObject({
    decisions: DECISIONS,
    recorded: { identical: DECISIONS, different: 0 },
  });
  const told = events.slice(0, -1).map((event) => ('done' in event ? event : undefined));
  for (const [index, each] of told.entries()) {
    expect(each?.all).toBeLessThanOrEqual(DECISIONS);
    expect(each?.done).toBeGreaterThanOrEqual(told[index - 1]?.done ?? 0);
  }
});

it('gives the work up when the signal is aborted, and the thread goes on with the next', async () => {
  const left = new AbortController();
  const running = all(left.signal);
  left.abort();
  await expect(running).rejects.toMatchObject({ status: 499, code: 'client_closed_request' });
  expect(await all(new AbortController().signal)).not.toEqual([]);
});
