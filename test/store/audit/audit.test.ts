import { expect, it, onTestFinished } from 'vitest';
import {
  appendAuditEntry,
  type ChainVerdict,
  listAuditEntries,
  verifyAuditChain,
} from '../../../src/store/audit/audit-entries.ts';
import type { NewAuditEntry } from '../../../src/store/db/audit-chain.ts';
import { type Database, openDatabase } from '../../../src/store/db/database.ts';
import { build } from '../../../src/store/db/sql.ts';

const KEY = Buffer.alloc(32, 5);
const NOW = Date.UTC(2026, 2, 1);

const entry = (changes: Partial<NewAuditEntry> = {}): NewAuditEntry => ({
  organizationId: 'org_1',
  actorKind: 'cli',
  actorId: null,
  memberId: null,
  action: 'key.update',
  targetType: 'key',
  targetId: 'key_1',
  beforeJson: '{"description":"before"}',
  afterJson: '{"description":"after"}',
  ...changes,
});

function database(auditKey: Buffer | undefined = KEY): Database {
  const db = openDatabase(':memory:', { create: true, ...(auditKey === undefined ? {} : { auditKey }) });
  onTestFinished(() => db.close());
  return db;
}

/** Entries of two organizations by turns, one every second. */
function chainOf(length: number): Database {
  const db = database();
  db.transaction(() => {
    for (let index = 0; index < length; index++) {
      appendAuditEntry(db, entry({ organizationId: `org_${index % 2}`, targetId: `key_${index}` }), NOW + index * 1000);
    }
  });
  return db;
}

/** What someone can do who has the file and SQLite. */
function tamper(db: Database, ...statements: readonly string[]): void {
  db.connection.exec(
    'DROP TRIGGER audit_is_never_updated; DROP TRIGGER audit_is_never_deleted; DROP TRIGGER audit_is_only_appended_to',
  );
  for (const statement of statements) db.connection.exec(statement);
}

const verdict = (db: Database, { key = KEY, noted }: { key?: Buffer; noted?: string | undefined } = {}): ChainVerdict =>
  verifyAuditChain(db, key, noted, () => {});

const hmacOf = (db: Database, seq: number): string =>
  db.get(build.selectFrom('audit').select('hmac').where('seq', '=', seq))?.hmac ?? '';

const COLUMNS = [
  ['id', "'aud_other'"],
  ['organizationId', "'org_other'"],
  ['createdAt', 'createdAt + 1'],
  ['actorKind', "'job'"],
  ['actorId', "'mkey_1'"],
  ['memberId', "'mem_1'"],
  ['action', "'key.delete'"],
  ['targetType', "'rule'"],
  ['targetId', "'key_other'"],
  ['beforeJson', 'NULL'],
  ['afterJson', "'{}'"],
  ['hmac', "'00'"],
] as const;

it('a chain holds as it was written, and says its head', () => {
  const db = chainOf(2500);
  const shown: number[][] = [];

  expect(verifyAuditChain(db, KEY, undefined, (...figures) => shown.push(figures))).toEqual({
    head: { seq: 2500, hmac: hmacOf(db, 2500) },
    fault: undefined,
    sawNoted: false,
  });
  expect(shown).toEqual([
    [1000, 2500],
    [2000, 2500],
    [2500, 2500],
  ]);
  expect(verdict(database())).toEqual({ head: undefined, fault: undefined, sawNoted: false });
});

it.each(COLUMNS)('a change of %s is found where it was made', (column, value) => {
  const db = chainOf(5);
  tamper(db, `UPDATE audit SET ${column} = ${value} WHERE seq = 3`);

  expect(verdict(db)).toEqual({
    head: { seq: 2, hmac: hmacOf(db, 2) },
    fault: { seq: 3, kind: 'altered' },
    sawNoted: false,
  });
});

it('an entry that is gone is found, also when the others are renumbered', () => {
  const deleted = chainOf(5);
  tamper(deleted, 'DELETE FROM audit WHERE seq = 3');
  expect(verdict(deleted).fault).toEqual({ seq: 3, kind: 'missing' });

  const renumbered = chainOf(5);
  tamper(renumbered, 'DELETE FROM audit WHERE seq = 3', 'UPDATE audit SET seq = seq - 1 WHERE seq > 3');
  expect(verdict(renumbered).fault).toEqual({ seq: 3, kind: 'altered' });

  const beheaded = chainOf(5);
  tamper(beheaded, 'DELETE FROM audit WHERE seq = 1');
  expect(verdict(beheaded)).toEqual({ head: undefined, fault: { seq: 1, kind: 'missing' }, sawNoted: false });
});

it('entries that have changed places are found', () => {
  const db = chainOf(5);
  tamper(
    db,
    'UPDATE audit SET seq = 99 WHERE seq = 2',
    'UPDATE audit SET seq = 2 WHERE seq = 3',
    'UPDATE audit SET seq = 3 WHERE seq = 99',
  );

  expect(verdict(db).fault).toEqual({ seq: 2, kind: 'altered' });
});

it('entries taken away at the end are noticed by anyone who noted the head, and new ones change nothing about that', () => {
  const db = chainOf(5);
  const noted = hmacOf(db, 5);
  expect(verdict(db, { noted }).sawNoted).toBe(true);
  appendAuditEntry(db, entry(), NOW);
  expect(verdict(db, { noted }).sawNoted).toBe(true);

  tamper(db, 'DELETE FROM audit WHERE seq > 4');
  expect(verdict(db, { noted })).toEqual({
    head: { seq: 4, hmac: hmacOf(db, 4) },
    fault: undefined,
    sawNoted: false,
  });
  // Others in their place are no help: the noted head is not among them.
  appendAuditEntry(db, entry(), NOW);
  expect(verdict(db, { noted })).toMatchObject({ fault: undefined, sawNoted: false });
});

it('nothing holds under another key', () => {
  expect(verdict(chainOf(2), { key: Buffer.alloc(32, 6) }).fault).toEqual({ seq: 1, kind: 'altered' });
});

it('the database itself refuses to change, delete, replace, skip or insert between', () => {
  const db = chainOf(3);
  const again = (seq: number, id: string): string =>
    `INSERT OR REPLACE INTO audit SELECT ${seq}, ${id}, organizationId, createdAt, actorKind, actorId, memberId, action, targetType, targetId, NULL, NULL, hmac, NULL FROM audit WHERE seq = 1`;

  for (const statement of [
    "UPDATE audit SET action = 'key.read'",
    'DELETE FROM audit WHERE seq = 3',
    again(1, 'id'),
    again(4, 'id'),
    again(5, "'aud_other'"),
    again(0, "'aud_other'"),
  ]) {
    expect(() => db.connection.exec(statement), statement).toThrow('the audit log is append-only');
  }
  expect(verdict(db).fault).toBeUndefined();
});

it('nothing can be audited on a connection without the key', () => {
  const db = openDatabase(':memory:', { create: true });
  onTestFinished(() => db.close());
  expect(() => appendAuditEntry(db, entry(), NOW)).toThrow('The database was opened without the audit key');
});

it('a change that is undone leaves no entry, and the chain goes on without a gap', () => {
  const db = chainOf(2);
  expect(() =>
    db.transaction(() => {
      appendAuditEntry(db, entry(), NOW);
      throw new Error('refused');
    }),
  ).toThrow('refused');
  appendAuditEntry(db, entry(), NOW);

  expect(verdict(db)).toMatchObject({ head: { seq: 3 }, fault: undefined });
});

it('lists the entries of one organization, newest first, in pages, also when clocks went back', () => {
  const db = database();
  const times = [NOW, NOW + 5, NOW + 3, NOW + 3];
  for (const [index, time] of times.entries()) appendAuditEntry(db, entry({ targetId: `key_${index}` }), time);
  appendAuditEntry(db, entry({ organizationId: 'org_2' }), NOW + 4);

  const page = listAuditEntries(db, 'org_1', {}, { limit: 2 });
  const rest = listAuditEntries(db, 'org_1', {}, { limit: 2, cursor: page.nextCursor ?? '' });
  expect([...page.items, ...rest.items].map(({ targetId }) => targetId)).toEqual(['key_1', 'key_3', 'key_2', 'key_0']);
  expect(rest.nextCursor).toBeNull();
  expect(() => listAuditEntries(db, 'org_2', {}, { limit: 2, cursor: page.nextCursor ?? '' })).toThrow(
    'The cursor does not belong to this list.',
  );
});

it('reads no more rows than it answers, whatever it filters by', () => {
  const db = chainOf(3);
  const plans: string[] = [];
  const { connection } = db;
  const [last] = listAuditEntries(db, 'org_0', {}, { limit: 1 }).items;
  for (const filter of [
    {},
    { action: 'key.update' },
    { targetId: 'key_0' },
    { action: 'key.update', targetId: 'key_0' },
    { from: NOW, to: NOW + 9 },
    { action: 'key.update', targetId: 'key_0', from: NOW, to: NOW + 9 },
  ]) {
    for (const cursor of [undefined, Buffer.from(last?.id ?? '').toString('base64url')]) {
      const explained: Database = {
        ...db,
        all: (query) => {
          const { sql, parameters } = query.compile();
          const steps = connection
            .prepare<unknown[], { detail: string }>(`EXPLAIN QUERY PLAN ${sql}`)
            .all(...parameters);
          plans.push(...steps.map(({ detail }) => detail));
          return db.all(query);
        },
      };
      listAuditEntries(explained, 'org_0', filter, { limit: 1, cursor });
    }
  }
  const index: Record<string, string> = {
    audit_by_time: '(organizationId=?',
    audit_by_action: '(organizationId=? AND action=?',
    audit_by_target: '(organizationId=? AND targetId=?',
    audit_by_target_action: '(organizationId=? AND targetId=? AND action=?',
  };
  expect(plans.filter((plan) => plan.includes('TEMP B-TREE'))).toEqual([]);
  expect(plans).toHaveLength(12);
  for (const plan of plans) {
    const [, name = '', columns = ''] = /^SEARCH audit USING INDEX (\w+) (.*)$/.exec(plan) ?? [];
    expect(columns.startsWith(index[name] ?? 'no such index'), plan).toBe(true);
  }
  expect(new Set(plans.map((plan) => plan.split(' ')[4]))).toEqual(new Set(Object.keys(index)));
});
