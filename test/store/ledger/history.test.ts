// The call log is sealed: whatever is edited, inserted or deleted behind the gateway's back is named (issue 29, 5).

import { hash } from 'node:crypto';
import { expect, it, onTestFinished } from 'vitest';
import { type Database, openDatabase } from '../../../src/store/db/database.ts';
import { hasUnsealed, nextSeal, storeSeal } from '../../../src/store/ledger/call-seals.ts';
import { forgetCalls, forgetReferences } from '../../../src/store/ledger/retention.ts';
import { verifyHistory } from '../../../src/store/ledger/verify-history.ts';
import { giveUpCalls, insertCall } from '../../support/stored-calls.ts';
import { newDecision } from '../fixture.ts';

const KEY = Buffer.alloc(32, 5);
const NOW = Date.UTC(2026, 2, 1);
const HOUR = 3_600_000;
const DATA = '{"subjects":{}}';
const decision = (input: string) =>
  newDecision({ dataText: DATA, dataDigest: hash('sha256', DATA), inputJson: `{"action":"${input}"}` });

/** Calls, one a second unless it is said otherwise, with a decision of its own for each ten. */
function filled(calls: number, everyMs = 1000): Database {
  const db = openDatabase(':memory:', { create: true, auditKey: KEY });
  onTestFinished(() => db.close());
  const caller = { organizationId: 'org_1', projectId: 'proj_1', keyId: 'key_1', memberId: 'mem_1' };
  db.transaction(() => {
    for (let place = 0; place < calls; place++) {
      const served = { ...caller, providerId: 'sandbox', modelId: 'large', cost: BigInt(place) };
      insertCall(db, NOW + place * everyMs, served, decision(String(Math.floor(place / 10))));
    }
  });
  return db;
}

function sealAll(db: Database, now = Number.POSITIVE_INFINITY): void {
  for (let seal = nextSeal(db, now); seal !== undefined; seal = nextSeal(db, now)) storeSeal(db, seal, NOW);
}

const verify = (db: Database) => verifyHistory(db, KEY, undefined, () => {});
const faultsOf = (db: Database) =>
  verify(db).faults.map(({ kind, table, row, block }) => [kind, table, row.replace(/^.*\(|\)$/g, ''), block]);

const numberAt = (db: Database, place: number): number =>
  db.connection
    .prepare<[number], number>('SELECT number FROM ledger ORDER BY number LIMIT 1 OFFSET ?')
    .pluck()
    .get(place) ?? 0;

it('closes a block at a thousand calls, after a minute, and at the end of an hour', () => {
  const db = filled(2500);
  expect(nextSeal(db, NOW)?.block).toMatchObject({ number: 1, calls: 1000, last: numberAt(db, 999), previous: '' });
  sealAll(db, NOW + 2_000_000);
  expect(verify(db)).toMatchObject({ fault: undefined, faults: [], blocks: 2, unsealed: 500 });
  expect(hasUnsealed(db)).toBe(true);
  sealAll(db, NOW + 2_060_000);
  expect(verify(db)).toMatchObject({ fault: undefined, faults: [], blocks: 3, unsealed: 0 });

  const late = filled(3605);
  sealAll(late, NOW + HOUR + 4000);
  expect(verify(late)).toMatchObject({ faults: [], blocks: 4, unsealed: 5 });
});

it('seals a call that was open when its block was closed, once it is over', () => {
  const db = filled(20);
  const number = numberAt(db, 7);
  db.connection.exec(`UPDATE ledger SET state = 0, settledAt = NULL WHERE number = ${number}`);
  sealAll(db);
  expect(verify(db)).toMatchObject({ faults: [], blocks: 1 });
  db.connection.exec(`UPDATE ledger SET state = 1, settledAt = 5, cost = 9 WHERE number = ${number}`);
  sealAll(db);
  expect(verify(db)).toMatchObject({ faults: [], blocks: 2 });
  db.connection.exec(`UPDATE ledger SET cost = 8 WHERE number = ${number}`);
  expect(faultsOf(db)).toEqual([['edited', 'ledger', `call ${number}`, 2]]);
  db.connection.exec(`DELETE FROM ledger WHERE number = ${number}`);
  expect(faultsOf(db)).toEqual([['deleted', 'ledger', `call ${number}`, 2]]);
});

it('names the call whose cost was zeroed, the one that was deleted and the one that was inserted', () => {
  const db = filled(1500);
  sealAll(db);
  const [edited, deleted] = [numberAt(db, 1200), numberAt(db, 300)];
  db.connection.exec(`
    UPDATE ledger SET cost = 0 WHERE number = ${edited};
    DELETE FROM ledger WHERE number = ${deleted};
    INSERT INTO ledger (number, id, origin, state, createdAt, requestId) SELECT ${deleted + 5}, id, origin, 1, 1, requestId FROM ledger LIMIT 1`);
  expect(faultsOf(db)).toEqual([
    ['inserted', 'ledger', `call ${deleted + 5}`, 1],
    ['deleted', 'ledger', `call ${deleted}`, 1],
    ['edited', 'ledger', `call ${edited}`, 2],
  ]);
});

it.each([
  ['an input', "UPDATE call_verdicts SET inputJson = '{}' WHERE id = 3", ['edited', 'call_verdicts']],
  ['an outcome', "UPDATE call_verdicts SET outcome = 'deny' WHERE id = 3", ['edited', 'call_verdicts']],
  ['a caller', "UPDATE call_origins SET keyId = 'key_2'", ['edited', 'call_origins']],
  ['a target', "UPDATE call_targets SET modelId = 'small'", ['edited', 'call_targets']],
  ['a document', "UPDATE data_documents SET text = '{}'", ['edited', 'data_documents']],
  [
    'a further decision',
    "INSERT INTO call_verdicts SELECT 99, x'00', 1, document, clientAddress, outcome, bundleDigest, ruleRevision, reasonJson, violationsJson, shadowJson, inputJson FROM call_verdicts WHERE id = 1",
    ['edited', 'call_verdicts'],
  ],
  ['the marks of a block', "UPDATE call_blocks SET marks = x''", ['edited', 'call_blocks']],
  ['the digest of a block', "UPDATE call_blocks SET digest = ''", ['edited', 'call_blocks']],
  ['a block', 'DELETE FROM call_blocks', ['deleted', 'call_blocks']],
  [
    'another block',
    'INSERT INTO call_blocks SELECT 9, last, calls, digest, openJson, marks, 0 FROM call_blocks',
    ['inserted', 'call_blocks'],
  ],
])('names %s that was changed', (_, statement, fault) => {
  const db = filled(30);
  sealAll(db);
  expect(verify(db).faults).toEqual([]);
  db.connection.exec(statement);
  expect(faultsOf(db).map(([kind, table]) => [kind, table])).toContainEqual(fault);
});

it('lets retention delete whole blocks, and nobody else', () => {
  const db = filled(2 * 360, 10_000);
  sealAll(db);
  giveUpCalls(db, NOW + HOUR);
  expect(verify(db)).toMatchObject({ fault: undefined, faults: [] });
  expect(forgetCalls(db, NOW + HOUR, 50)).toBe(50);
  expect(verify(db).faults).toEqual([]);
  while (forgetCalls(db, NOW + 2 * HOUR, 500) > 0);
  while (forgetReferences(db, NOW + HOUR, 500) > 0);
  expect(verify(db)).toMatchObject({ fault: undefined, faults: [], unsealed: 0 });
  expect(db.connection.prepare('SELECT count(*) FROM ledger').pluck().get()).toBe(360);
  const first = numberAt(db, 0);
  db.connection.exec(`DELETE FROM ledger WHERE number = ${first}`);
  expect(faultsOf(db)).toEqual([['deleted', 'ledger', `call ${first}`, 2]]);
});

it('seals calls once when two processes have read the same block', () => {
  const db = filled(30);
  const [one, other] = [nextSeal(db, Number.POSITIVE_INFINITY), nextSeal(db, Number.POSITIVE_INFINITY)];
  if (one === undefined || other === undefined) throw new Error('There is no block.');
  storeSeal(db, one, NOW);
  storeSeal(db, other, NOW);
  expect(verify(db)).toMatchObject({ head: { seq: 1 }, fault: undefined, faults: [], blocks: 1 });
});
