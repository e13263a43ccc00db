// Rules, groups, tags, keys and limits in force are those that the audit log implies (issue 29, 5).
import { hash } from 'node:crypto';
import { expect, it } from 'vitest';
import { newId } from '../../../src/domain/id.ts';
import { appendAuditEntry } from '../../../src/store/audit/audit-entries.ts';
import { type Database, openDatabase } from '../../../src/store/db/database.ts';
import { build } from '../../../src/store/db/sql.ts';
import { nextSeal, storeSeal } from '../../../src/store/ledger/call-seals.ts';
import { verifyHistory } from '../../../src/store/ledger/verify-history.ts';
import { insertCall } from '../../support/stored-calls.ts';
import { newDecision, START, storeWithTenant } from '../fixture.ts';

const KEY = Buffer.alloc(32, 5);

/** An organization with one of everything that is sealed, and another connection, which writes no audit log. */
async function filled() {
  const { store, path, tenant } = await storeWithTenant({ auditKey: KEY });
  const { organizationId, memberId, keyId } = tenant;
  await store.write(({ connection }) =>
    connection.exec(`
      INSERT INTO groups (id, organizationId, name, createdAt, updatedAt) VALUES ('grp_1', '${organizationId}', 'research', 1, 1);
      INSERT INTO group_holders VALUES ('${organizationId}', 'grp_1', '${memberId}');
      INSERT INTO rules (id, organizationId, subjectId, scope, ruleType, ruleValueJson, createdAt, updatedAt)
        VALUES ('rule_1', '${organizationId}', '${keyId}', 'key', 'deny_models', '{"models":["large"]}', 1, 1);
      INSERT INTO tag_sets VALUES ('tags_1', '${organizationId}', 'large', '["eu"]', 1, 1);
      INSERT INTO budgets (subjectId, organizationId, scope, usageLimit, usage, reserved) VALUES ('${memberId}', '${organizationId}', 'member', 5, 0, 0)`),
  );
  const other = openDatabase(path);
  const faults = () =>
    verifyHistory(other, KEY, undefined, () => {}).faults.map(({ kind, table, row }) => [kind, table, row]);
  return { store, tenant, other, faults };
}

it('holds after changes, also those that count no calls and those that were undone', async () => {
  const { store, faults, tenant } = await filled();
  await store.write((db) =>
    db.connection.exec('UPDATE keys SET usage = 9, lastUsedAt = 3; UPDATE rules SET wouldDeny = 5'),
  );
  await expect(
    store.write((db) => {
      db.connection.exec("UPDATE rules SET mode = 'report'");
      throw new Error('refused');
    }),
  ).rejects.toThrow();
  await store.write((db) => {
    db.connection.exec("UPDATE rules SET status = 'inactive'");
    const entry = {
      organizationId: tenant.organizationId,
      actorKind: 'cli',
      actorId: null,
      memberId: null,
      beforeJson: null,
      afterJson: null,
    } as const;
    appendAuditEntry(db, { ...entry, action: 'rule.update', targetType: 'rule', targetId: 'rule_1' }, 1);
    db.run(build.deleteFrom('group_holders'));
  });
  expect(faults()).toEqual([]);
  const entries = await store.read((db) =>
    db.all(build.selectFrom('audit').select(['action', 'stateJson']).orderBy('seq', 'desc').limit(2)),
  );
  expect(entries).toEqual([
    {
      action: 'state.change',
      stateJson: expect.stringMatching(/^\[\["group_holders","grp_1 mem_\w+","[\w-]{43}",null\]\]$/),
    },
    { action: 'rule.update', stateJson: expect.stringMatching(/^\[\["rules","rule_1","[\w-]{43}","[\w-]{43}"\]\]$/) },
  ]);
});

it.each([
  ['a rule', `UPDATE rules SET ruleValueJson = '{"models":[]}'`, ['edited', 'rules', 'rule_1']],
  [
    'what is compiled of rules',
    `UPDATE subject_rules SET compiledJson = '{}' WHERE scope = 'organization'`,
    ['edited', 'subject_rules', expect.stringMatching(/^org_/)],
  ],
  ['a rule that is gone', 'DELETE FROM rules', ['deleted', 'rules', 'rule_1']],
  [
    'a rule that nobody wrote',
    `INSERT INTO rules SELECT 'rule_2', organizationId, subjectId, scope, ruleType, ruleValueJson, mode, status, description, createdAt, updatedAt, NULL, NULL, 0, 0, NULL, NULL, NULL FROM rules`,
    ['inserted', 'rules', 'rule_2'],
  ],
  [
    'a member of a group',
    'DELETE FROM group_holders',
    ['deleted', 'group_holders', expect.stringMatching(/^grp_1 mem_/)],
  ],
  ['a group', `UPDATE groups SET name = 'sales'`, ['edited', 'groups', 'grp_1']],
  ['tags', `UPDATE tag_sets SET tagsJson = '["us"]'`, ['edited', 'tag_sets', 'tags_1']],
  ['a budget', 'UPDATE budgets SET usageLimit = 500', ['edited', 'budgets', expect.stringMatching(/^mem_/)]],
  ['a role', `UPDATE members SET role = 'admin'`, ['edited', 'members', expect.stringMatching(/^mem_/)]],
  [
    'the secret of a key',
    `UPDATE keys SET secretHash = 'mine' WHERE id = (SELECT min(id) FROM keys)`,
    ['edited', 'keys', expect.stringMatching(/^key_/)],
  ],
  [
    "a key's limit",
    'UPDATE keys SET usageLimit = 5 WHERE id = (SELECT min(id) FROM keys)',
    ['edited', 'keys', expect.stringMatching(/^key_/)],
  ],
])('names %s', async (_, statement, fault) => {
  const { faults, other } = await filled();
  expect(faults()).toEqual([]);
  other.connection.exec(statement);
  expect(faults()).toEqual([fault]);
});

it('names a rule that was edited in place, also after an administrator has changed it', async () => {
  const { store, faults, other } = await filled();
  other.connection.exec(`UPDATE rules SET ruleValueJson = '{"models":[]}'`);
  await store.write(({ connection }) => connection.exec(`UPDATE rules SET description = '${newId('rule')}'`));
  expect(faults()).toEqual([['edited', 'rules', 'rule_1']]);
});

/** Tables with the columns that are not sealed: sums that calls count in, and days of use. */
const WALKED: Readonly<Record<string, readonly string[]>> = {
  ledger: [],
  call_verdicts: ['usedOn'],
  call_origins: ['usedOn'],
  call_targets: ['usedOn'],
  data_documents: ['usedOn'],
  call_blocks: ['forgotten'],
  rules: ['wouldDeny', 'wouldAllow', 'lastSeenAt'],
  subject_rules: [],
  groups: [],
  group_holders: [],
  members: [],
  tag_sets: [],
  keys: ['usage', 'reserved', 'currentPeriodUsage', 'currentPeriodReserved', 'currentPeriodStartedAt', 'lastUsedAt'],
  budgets: ['usage', 'reserved', 'currentPeriodUsage', 'currentPeriodReserved', 'currentPeriodStartedAt'],
  audit: [],
};

/** Numbers that look random, the same in each run. */
function* random(seed: number): Generator<number> {
  for (let state = seed; ; ) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    yield state / 2 ** 32;
  }
}

/** An edit of any row in any of the tables; undefined: the database has no such row, or would refuse it. */
function tamper(db: Database, next: () => number): string | undefined {
  const pick = <T>(list: readonly T[]): T | undefined => list[Math.floor(next() * list.length)];
  const table = pick(Object.keys(WALKED)) ?? '';
  const columns = db.connection.prepare<[string], string>('SELECT name FROM pragma_table_info(?)').pluck().all(table);
  const sealed = columns.filter((column) => !WALKED[table]?.includes(column));
  const key = columns[table === 'group_holders' ? 2 : 0];
  const row = pick(db.connection.prepare<[], string | number>(`SELECT ${key} FROM ${table} ORDER BY 1`).pluck().all());
  if (row === undefined) return undefined;
  const column = pick(sealed) ?? '';
  const other = (name: string): string =>
    `CASE typeof(${name}) WHEN 'integer' THEN ${name} + 1 WHEN 'blob' THEN CAST(${name} || 'x' AS BLOB) ELSE coalesce(${name}, '') || '7' END`;
  const copied = columns.map((name) =>
    /^(id|seq|number|digest|holderId|subjectId|secretHash|name|target|last)$/.test(name)
      ? other(name).replace('+ 1', '+ 900001')
      : name,
  );
  const statement =
    pick([
      `UPDATE ${table} SET ${column} = ${other(column)} WHERE ${key} = ?`,
      `DELETE FROM ${table} WHERE ${key} = ?`,
      `INSERT INTO ${table} SELECT ${copied.join(', ')} FROM ${table} WHERE ${key} = ?`,
    ]) ?? '';
  try {
    return db.connection.prepare(statement).run(row).changes === 1 ? `${statement} ${row}` : undefined;
  } catch {
    return undefined;
  }
}

it('names each of a hundred random edits, in whatever table', async () => {
  const { store, tenant, other } = await filled();
  await store.write((db) => {
    const { organizationId, projectId, keyId, memberId } = tenant;
    for (let place = 0; place < 60; place++) {
      const data = `{"subjects":{"n":${place % 3}}}`;
      const decision = newDecision({
        dataText: data,
        dataDigest: hash('sha256', data),
        inputJson: `{"n":${place % 9}}`,
      });
      const call = {
        organizationId,
        projectId,
        keyId,
        memberId,
        providerId: 'sandbox',
        modelId: `m-${place % 4}`,
        cost: 5n,
      };
      insertCall(db, START + place * 1000, call, decision);
      if (place % 20 !== 19) continue;
      const seal = nextSeal(db, Number.POSITIVE_INFINITY);
      if (seal !== undefined) storeSeal(db, seal, START);
    }
  });
  const { connection } = other;
  connection.pragma('foreign_keys = OFF');
  connection.pragma('ignore_check_constraints = ON');
  const verdict = () => verifyHistory(other, KEY, head, () => {});
  const head = other.get(build.selectFrom('audit').select('hmac').orderBy('seq', 'desc').limit(1))?.hmac;
  expect(verdict()).toMatchObject({ fault: undefined, faults: [], sawNoted: true });
  const numbers = random(29);
  const next = (): number => numbers.next().value ?? 0;
  const unnoticed: string[] = [];
  for (let edits = 0; edits < 100; ) {
    connection.exec('BEGIN');
    for (const trigger of ['is_never_updated', 'is_never_deleted', 'is_only_appended_to'])
      connection.exec(`DROP TRIGGER audit_${trigger}`);
    const edit = tamper(other, next);
    if (edit !== undefined) {
      edits += 1;
      const { fault, faults, sawNoted } = verdict();
      if (fault === undefined && faults.length === 0 && sawNoted) unnoticed.push(edit);
    }
    connection.exec('ROLLBACK');
  }
  expect(unnoticed).toEqual([]);
}, 60_000);
