import { compileSubjectRules } from '../../src/policy/data-document.ts';
import type { Database } from '../../src/store/db/database.ts';
import type { Store } from '../../src/store/store.ts';
import { insertOrganization, insertProject } from '../../src/store/tenants/tenants.ts';
import { SIX_RULES } from './six-rules.ts';

export const ORGANIZATION_ID = 'org_bench';
export const PROJECT_ID = 'proj_bench';
const KEYS_PER_MEMBER = 10;
/** Rows of one transaction: keeps the write-ahead log small. */
const BATCH = 20_000;
const DIGITS = 32;

/** The ids of the key with a number, from 0, and of its owner. */
export function keyIds(number: number): { keyId: string; memberId: string } {
  const id = (prefix: string, value: number): string => `${prefix}_${String(value).padStart(DIGITS, '0')}`;
  return { keyId: id('key', number), memberId: id('mem', Math.floor(number / KEYS_PER_MEMBER)) };
}

const OWNER_MARK = '@'.repeat(DIGITS - 2);

/** The compiled six rules of a subject, their ids as long as real ones and holding the mark where its number goes. */
const compiledRules = (): string =>
  compileSubjectRules(
    SIX_RULES.map((rule, index) => ({ ...rule, id: `rule_${OWNER_MARK}0${index}`, mode: 'enforce' })),
  );

const NUMBERS = 'WITH RECURSIVE numbers (i) AS (SELECT :first UNION ALL SELECT i + 1 FROM numbers WHERE i < :last)';

const INSERT_MEMBERS = `${NUMBERS}
  INSERT INTO members (id, organizationId, email, role, createdAt, updatedAt)
  SELECT printf('mem_%0${DIGITS}d', i), :organizationId, printf('m%d@example.test', i), 'developer', 0, 0 FROM numbers`;

const INSERT_KEYS = `${NUMBERS}
  INSERT INTO keys (id, organizationId, projectId, createdBy, description, secretHash, pepperId, mask, createdAt, updatedAt)
  SELECT printf('key_%0${DIGITS}d', i), :organizationId, :projectId, printf('mem_%0${DIGITS}d', i / ${KEYS_PER_MEMBER}),
    'bench', lower(hex(randomblob(32))), 'pepper', 'pcl_none', 0, 0 FROM numbers`;

const INSERT_RULES = `${NUMBERS}
  INSERT INTO subject_rules (subjectId, organizationId, scope, compiledJson)
  SELECT printf(:prefix || '_%0${DIGITS}d', i), :organizationId, :scope,
    replace(:compiled, '${OWNER_MARK}', printf(:prefix || '%0${DIGITS - 5}d', i)) FROM numbers`;

type Parameters = Readonly<Record<string, string | number>>;

async function insertRows(store: Store, sql: string, from: number, to: number, parameters: Parameters): Promise<void> {
  for (let first = from; first < to; first += BATCH) {
    const last = Math.min(first + BATCH, to) - 1;
    await store.write((db: Database) => db.connection.prepare(sql).run({ ...parameters, first, last }));
  }
}

/** Makes the organization and its project, with the organization's six rules; there are no keys yet. */
export async function createOrganization(store: Store): Promise<void> {
  await store.write((db, now) => {
    insertOrganization(db, { id: ORGANIZATION_ID, name: 'Bench' }, now);
    insertProject(db, { id: PROJECT_ID, organizationId: ORGANIZATION_ID, name: 'Bench' }, now);
    const compiled = compiledRules().replaceAll(OWNER_MARK, 'o'.repeat(OWNER_MARK.length));
    db.connection
      .prepare('UPDATE subject_rules SET compiledJson = ? WHERE subjectId = ?')
      .run(compiled, ORGANIZATION_ID);
  });
}

/** Adds the keys with the numbers `from` up to `to`, and their members, each with six rules of its own, in bulk. */
export async function addKeys(store: Store, from: number, to: number): Promise<void> {
  const parameters = { organizationId: ORGANIZATION_ID };
  const owners: [number, number] = [Math.ceil(from / KEYS_PER_MEMBER), Math.ceil(to / KEYS_PER_MEMBER)];
  const compiled = compiledRules();
  await insertRows(store, INSERT_MEMBERS, ...owners, parameters);
  await insertRows(store, INSERT_RULES, ...owners, { ...parameters, prefix: 'mem', scope: 'member', compiled });
  await insertRows(store, INSERT_KEYS, from, to, { ...parameters, projectId: PROJECT_ID });
  await insertRows(store, INSERT_RULES, from, to, { ...parameters, prefix: 'key', scope: 'key', compiled });
}
