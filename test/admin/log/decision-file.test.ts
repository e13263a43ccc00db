// The file of decisions: those of the database, each once, whatever happens.
import { appendFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { DecisionFile, exportDecisions, type FileProgress } from '../../../src/admin/log/decision-file.ts';
import { type Database, openDatabase } from '../../../src/store/db/database.ts';
import { build } from '../../../src/store/db/sql.ts';
import { positionNow } from '../../../src/store/ledger/call-follower.ts';
import { CALL_STATES } from '../../../src/store/ledger/statements.ts';
import { addTenant, newDecision, START, storeWithTenant, temporaryDirectory } from '../../store/fixture.ts';
import { insertCall, type StoredCall } from '../../support/stored-calls.ts';

const INPUT = JSON.stringify({ action: 'chat', candidates: [{ id: 'acme/large' }] });

async function logged({ maxBytes = 1e9, maxBehind = 1e6 } = {}) {
  const { store, path: database, tenant } = await storeWithTenant();
  const tenants = [tenant, await addTenant(store)];
  const file = path.join(temporaryDirectory(), 'decisions.ndjson');
  let made = 0;
  const add = (count = 1, more: Partial<StoredCall> = {}, isDecided = true) =>
    store.write((db) =>
      Array.from({ length: count }, () => {
        made += 1;
        const { organizationId, projectId, keyId, memberId } = tenants[made % 2] ?? tenant;
        const call = { organizationId, projectId, keyId, memberId, ...more };
        const inputJson = INPUT.replace('large', `large-${made % 7}`);
        return insertCall(db, START + made * 100, call, isDecided ? newDecision({ inputJson }) : undefined).number;
      }),
    );
  const settle = (numbers: readonly number[]) =>
    store.write((db) =>
      db.run(build.updateTable('ledger').set({ state: CALL_STATES.settled, cost: 7n }).where('number', 'in', numbers)),
    );
  const open = () => {
    const db = openDatabase(database, { readonly: true });
    return new DecisionFile(db, { path: file, maxBytes, kept: 100, maxBehind, begin: positionNow(db) });
  };
  /** What the database exports of all organizations. */
  const exported = (): Promise<string[]> =>
    store.read((db: Database) =>
      tenants
        .flatMap(({ organizationId }) => [...exportDecisions(db, { organizationId })].map(({ line }) => line))
        .sort(),
    );
  /** What stands in all files. */
  const lines = (): string[] => {
    const ages = Array.from({ length: 101 }, (_, age) => (age === 0 ? file : `${file}.${age}`));
    const texts = ages.filter((name) => existsSync(name)).map((name) => readFileSync(name, 'utf8'));
    for (const text of texts) expect(text === '' || text.endsWith('\n')).toBe(true);
    return texts.flatMap((text) => text.split('\n').filter((line) => line !== '')).sort();
  };
  return { add, settle, open, file, exported, lines };
}

/** Until nothing is left. @returns what was written and dropped in all */
function writeAll(file: DecisionFile): FileProgress {
  let [written, dropped] = [0, 0];
  for (;;) {
    const progress = file.write();
    written += progress.written;
    dropped += progress.dropped;
    if (!progress.isBehind) return { ...progress, written, dropped };
  }
}

const written = (count: number, dropped = 0): FileProgress => ({ written: count, dropped, isBehind: false });

it('has the decisions of all organizations from the first look on, each when its call is over, as they are exported', async () => {
  const { add, settle, open, exported, lines } = await logged();
  const file = open();
  expect(writeAll(file)).toEqual(written(0));
  const waiting = await add(3, { state: 'open', settledAt: null, statusCode: null });
  await add(2500, { state: 'denied' });
  await add(5, {}, false);
  expect(writeAll(file)).toEqual(written(2500));
  await settle(waiting.slice(1));
  expect(writeAll(file)).toEqual(written(2));
  expect(writeAll(file)).toEqual(written(0));
  await settle(waiting);
  expect(writeAll(file)).toEqual(written(1));
  expect(lines()).toEqual(await exported());
});

it('has them over rotation, and goes on where another process stopped, with what was open then', async () => {
  const { add, settle, open, exported, lines, file } = await logged({ maxBytes: 20_000 });
  const first = open();
  writeAll(first);
  const waiting = await add(4, { state: 'open' });
  for (let round = 0; round < 5; round += 1) {
    await add(40);
    writeAll(first);
  }
  await settle(waiting);
  await add(1);
  expect(writeAll(open())).toEqual(written(5));
  expect(existsSync(`${file}.5`)).toBe(true);
  expect(lines()).toEqual(await exported());
});

it('neither loses nor repeats a line after a crash, wherever it came', async () => {
  const { add, open, exported, lines, file } = await logged({ maxBytes: 30_000 });
  const position = `${file}.position`;
  const first = open();
  writeAll(first);
  await add(10);
  writeAll(first);

  // Lines were written, and the position was not; the last line is half there.
  const before = readFileSync(position);
  await add(8);
  writeAll(first);
  writeFileSync(position, before);
  appendFileSync(file, '{"labels":{"app":"portc');
  await add(3);
  expect(writeAll(open())).toEqual(written(3));
  expect(lines()).toEqual(await exported());

  // The file was put aside, and the position was not written again.
  const whole = readFileSync(position);
  renameSync(file, `${file}.1`);
  writeFileSync(position, whole);
  await add(2);
  expect(writeAll(open())).toEqual(written(2));
  expect(lines()).toEqual(await exported());

  // Someone has written something else there.
  writeFileSync(position, '{"after":"here"}');
  const third = open();
  expect(writeAll(third)).toEqual(written(0));
  await add(1);
  expect(writeAll(third)).toEqual(written(1));
  expect(lines()).toEqual(await exported());
});

it('counts what it leaves out when too much is waiting: the oldest', async () => {
  const { add, open, exported, lines } = await logged({ maxBehind: 10 });
  const file = open();
  writeAll(file);
  await add(25);
  expect(writeAll(file)).toEqual(written(10, 15));
  const all = await exported();
  const there = lines();
  expect(there).toHaveLength(10);
  expect(there.every((line) => all.includes(line))).toBe(true);
  expect(Math.min(...there.map(timeOf))).toBe(all.map(timeOf).sort()[15]);
});

const timeOf = (line: string): number => Date.parse(JSON.parse(line).timestamp);

it('says why it cannot be written, and loses nothing once it can', async () => {
  const { add, open, exported, lines, file } = await logged();
  const log = open();
  writeAll(log);
  await add(3);
  rmSync(file);
  mkdirSync(file);
  expect(writeAll(log)).toEqual({ ...written(0), fault: expect.stringMatching(/EISDIR/) });
  await add(3);
  rmSync(file, { recursive: true });
  expect(writeAll(log)).toEqual(written(6));
  expect(lines()).toEqual(await exported());
});
