// Threads judge verdicts again as this one does, in the order that they are given.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { readBundle } from '../../../src/policy/bundle.ts';
import { createPdp } from '../../../src/policy/pdp.ts';
import { type Database, openDatabase } from '../../../src/store/db/database.ts';
import {
  createVerdictJudge,
  type JudgedVerdict,
  subjectsIn,
  type VerdictJobData,
} from '../../../src/workbench/replay/judge-again.ts';
import { judgeVerdictsByThreads, ruleWorldOf } from '../../../src/workbench/replay/judge-threads.ts';
import { logDecision } from '../../support/logged-decisions.ts';
import { rule, smallWorld } from '../small-world.ts';

const bundle = readBundle();
const pdp = createPdp(bundle);
const now = smallWorld({ group: [rule('rule_1', 'deny_models', { models: ['gpt-5'] })] });

let folder: string;
let databasePath: string;
let db: Database;
/** Of a call that would be denied now, and of two that would not change. */
let ids: readonly number[];

beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'portcullis-'));
  databasePath = path.join(folder, 'portcullis.sqlite');
  db = openDatabase(databasePath, { create: true });
  for (const [at, model] of ['gpt-5', 'claude-opus', '42'].entries()) {
    logDecision(db, smallWorld(), { keyId: 'key_1', model, time: Date.UTC(2026, 0, 31) + at });
  }
  ids = db.connection
    .prepare<[], { id: number }>('SELECT id FROM call_verdicts ORDER BY id')
    .all()
    .map(({ id }) => id);
});
afterAll(() => {
  db.close();
  rmSync(folder, { recursive: true });
});

async function all(data: VerdictJobData, verdicts: readonly number[]): Promise<JudgedVerdict[]> {
  const judged: JudgedVerdict[] = [];
  for await (const each of judgeVerdictsByThreads(data, verdicts, 2)) judged.push(each);
  return judged;
}

it.each<[string, Pick<VerdictJobData, 'rules'>]>([
  ['the current rules', { rules: ruleWorldOf(now) }],
  ['the recorded rules', { rules: null }],
])('by %s', async (_, { rules }) => {
  // More than one piece for each thread, and the last one smaller.
  const many = Array.from({ length: 4501 }, (_, at) => ids[at % ids.length] ?? 0);
  const here = createVerdictJudge(db, { pdp, subjectsOf: rules === null ? null : subjectsIn(rules) });
  const expected = [...here(many)];
  expect(expected.filter(({ outcome }) => Object(outcome).change !== null)).toHaveLength(rules === null ? 0 : 1501);
  expect(await all({ databasePath, bundle, rules }, many)).toEqual(expected);
});

it('ends where a thread fails, with what it failed of', async () => {
  const none = { databasePath: path.join(folder, 'none.sqlite'), bundle, rules: null };
  await expect(all(none, ids)).rejects.toThrow('The thread ended without an answer.');
});
