import { isDeepStrictEqual } from 'node:util';
import { sql } from 'kysely';
import { LRUCache } from 'lru-cache';
import { notFound } from '../../domain/errors.ts';
import type { Scope } from '../../generated/types.ts';
import { getOrMake } from '../../lib/collections.ts';
import { type Database, type Freshness, FreshReads } from '../db/database.ts';
import { countRows, raiseRuleRevision } from '../db/records.ts';
import { bind, build, prepare } from '../db/sql.ts';
import type { Row, RulesTable } from '../db/tables.ts';
import { isInParts, prepareTextParts, type TextParts } from '../db/text-parts.ts';

/** A rule as it is stored; its value is as written, what is compiled is the canonical form. */
export type RuleRecord = Omit<Row<RulesTable>, 'ruleValueJson'> & { readonly ruleValue: unknown };

/**
 * Effect that the rule would have had in mode `report`, the time since when, and the revision as which it has reported since
 * then.
 */
type Reported = 'reportsSince' | 'reportRevision' | 'wouldDeny' | 'wouldAllow' | 'lastSeenAt';

type Managed = 'managedBy' | 'managedName';

/** Without the folder that states it: a rule that none does. */
export type NewRule = Omit<
  RuleRecord,
  'organizationId' | 'subjectId' | 'scope' | 'createdAt' | 'updatedAt' | Reported | Managed
> &
  Partial<Pick<RuleRecord, Managed>>;
export type RuleChanges = Partial<Omit<NewRule, 'id'>>;

/** One of several writes of a subject's rules. */
export type RuleStep =
  | { readonly insert: NewRule }
  | { readonly update: RuleChanges; readonly id: string }
  | { readonly delete: string };

/** The parts of long values. */
const rulePartsOf = (db: Database): TextParts => prepareTextParts(db, 'rule_parts');

const toRule = ({ ruleValueJson, ...row }: Row<RulesTable>, parts: TextParts): RuleRecord => ({
  ...row,
  ruleValue: JSON.parse(parts.read(ruleValueJson)),
});

/** Makes the compiled text of a subject of all its rules, active or not, in the order of their ids. Given by admin/. */
export type CompileRules = (rules: readonly RuleRecord[]) => string;

/** All rules of a subject, oldest first. At most 200 (policy/reference.md, "Writing a rule"), so there are no pages. */
export function listRules(db: Database, organizationId: string, subjectId: string): RuleRecord[] {
  const parts = rulePartsOf(db);
  return db
    .all(
      build
        .selectFrom('rules')
        .selectAll()
        .where('organizationId', '=', organizationId)
        .where('subjectId', '=', subjectId)
        .orderBy('id'),
    )
    .map((row) => toRule(row, parts));
}

/** Counts the organization's rules in mode `report`, except one. */
export const countOtherReportRules = (db: Database, organizationId: string, id: string): number =>
  countRows(
    db,
    build
      .selectFrom('rules')
      .where('organizationId', '=', organizationId)
      .where('id', '<>', id)
      .where('reportsSince', 'is not', null),
  );

function getRow(db: Database, organizationId: string, subjectId: string, id: string): Row<RulesTable> {
  const row = db.get(
    build
      .selectFrom('rules')
      .selectAll()
      .where('organizationId', '=', organizationId)
      .where('subjectId', '=', subjectId)
      .where('id', '=', id),
  );
  if (row === undefined) throw notFound('There is no such rule.');
  return row;
}

/** The rule, or a 404 when this subject has none of that id. */
export const getRule = (db: Database, organizationId: string, subjectId: string, id: string): RuleRecord =>
  toRule(getRow(db, organizationId, subjectId, id), rulePartsOf(db));

/**
 * Compiles the subject's rules again and raises the organization's rule revision, in the transaction of the write.
 * @returns the revision, and the rules as they are now
 */
function recompile(db: Database, organizationId: string, subjectId: string, compile: CompileRules) {
  const revision = raiseRuleRevision(db, organizationId);
  const rules = listRules(db, organizationId, subjectId);
  const changed = db.run(
    build
      .updateTable('subject_rules')
      .set({
        compiledJson: prepareTextParts(db, 'compiled_parts').store(subjectId, compile(rules)),
        revision,
      })
      .where('organizationId', '=', organizationId)
      .where('subjectId', '=', subjectId),
  );
  if (changed !== 1) throw notFound('There is no such key, member, group or organization.');
  return { revision, rules };
}

const reports = ({ mode, status }: Pick<RuleRecord, 'mode' | 'status'>): boolean =>
  mode === 'report' && status === 'active';

/** Counts from this revision on what a rule in mode `report` would have changed; of any other rule nothing. */
function beginReports(db: Database, rule: RuleRecord, revision: number, now: number): void {
  const counts = { wouldDeny: 0, wouldAllow: 0, lastSeenAt: null };
  const since = reports(rule) ? { reportsSince: now, reportRevision: revision } : NO_REPORTS;
  db.run(
    build
      .updateTable('rules')
      .set({ ...counts, ...since })
      .where('organizationId', '=', rule.organizationId)
      .where('id', '=', rule.id),
  );
}

const NO_REPORTS = { reportsSince: null, reportRevision: null };

/** Whether what a rule reported before a write holds after it. @param before undefined: there was no such rule */
const reportsAlike = (before: RuleRecord | undefined, after: RuleRecord): boolean =>
  (before !== undefined && reports(before)) === reports(after) &&
  (!reports(after) || (before?.ruleType === after.ruleType && isDeepStrictEqual(before.ruleValue, after.ruleValue)));

/**
 * Returns the subject's scope, or throws a 404 when the organization has no such key, member or group and is not the subject
 * itself.
 */
function getScope(db: Database, organizationId: string, subjectId: string): Scope {
  const row = db.get(
    build
      .selectFrom('subject_rules')
      .select('scope')
      .where('organizationId', '=', organizationId)
      .where('subjectId', '=', subjectId),
  );
  if (row === undefined) throw notFound('There is no such key, member, group or organization.');
  return row.scope;
}

/**
 * Makes, changes and deletes rules of a key, member, group or organization, and compiles what they are then, in one transaction. Unknown
 * subject or rule: 404.
 */
export function writeRules(
  db: Database,
  organizationId: string,
  subjectId: string,
  steps: readonly RuleStep[],
  compile: CompileRules,
  now: number,
): void {
  db.transaction(() => {
    const parts = rulePartsOf(db);
    const subject = { organizationId, subjectId, scope: getScope(db, organizationId, subjectId) };
    const before = new Map(listRules(db, organizationId, subjectId).map((rule) => [rule.id, rule]));
    for (const step of steps) {
      if ('insert' in step) insertRow(db, subject, step.insert, parts, now);
      else if ('update' in step) updateRow(db, subject, step, parts, now);
      else deleteRow(db, subject, step.delete, parts);
    }
    const { revision, rules } = recompile(db, organizationId, subjectId, compile);
    for (const rule of rules) if (!reportsAlike(before.get(rule.id), rule)) beginReports(db, rule, revision, now);
  });
}

type Subject = Pick<RuleRecord, 'organizationId' | 'subjectId'>;

function insertRow(
  db: Database,
  subject: Subject & Pick<RuleRecord, 'scope'>,
  { ruleValue, ...columns }: NewRule,
  parts: TextParts,
  now: number,
): void {
  const ruleValueJson = parts.store(columns.id, JSON.stringify(ruleValue));
  const row = { ...columns, ...subject, ruleValueJson, createdAt: now, updatedAt: now };
  db.run(build.insertInto('rules').values(row));
}

function updateRow(
  db: Database,
  { organizationId, subjectId }: Subject,
  { id, update: { ruleValue, ...columns } }: Extract<RuleStep, { readonly id: string }>,
  parts: TextParts,
  now: number,
): void {
  const before = getRow(db, organizationId, subjectId, id).ruleValueJson;
  const ruleValueJson = ruleValue === undefined ? before : parts.store(id, JSON.stringify(ruleValue));
  db.run(
    build
      .updateTable('rules')
      .set({ ...columns, ruleValueJson, updatedAt: now })
      .where('organizationId', '=', organizationId)
      .where('subjectId', '=', subjectId)
      .where('id', '=', id),
  );
  parts.drop([before], [ruleValueJson]);
}

function deleteRow(db: Database, { organizationId, subjectId }: Subject, id: string, parts: TextParts): void {
  parts.drop([getRow(db, organizationId, subjectId, id).ruleValueJson], []);
  db.run(
    build
      .deleteFrom('rules')
      .where('organizationId', '=', organizationId)
      .where('subjectId', '=', subjectId)
      .where('id', '=', id),
  );
}

/** Stores a new rule of a key, member, group or organization, compiled in the same transaction. Unknown subject: 404. */
export function insertRule(
  db: Database,
  organizationId: string,
  subjectId: string,
  rule: NewRule,
  compile: CompileRules,
  now: number,
): RuleRecord {
  return db.transaction(() => {
    writeRules(db, organizationId, subjectId, [{ insert: rule }], compile, now);
    return getRule(db, organizationId, subjectId, rule.id);
  });
}

/** Changes a rule, compiled in the same transaction. Unknown rule: 404. */
export function updateRule(
  db: Database,
  organizationId: string,
  subjectId: string,
  id: string,
  changes: RuleChanges,
  compile: CompileRules,
  now: number,
): RuleRecord {
  return db.transaction(() => {
    writeRules(db, organizationId, subjectId, [{ update: changes, id }], compile, now);
    return getRule(db, organizationId, subjectId, id);
  });
}

/** Deletes a rule, compiled in the same transaction. Unknown rule: 404. */
export function deleteRule(
  db: Database,
  organizationId: string,
  subjectId: string,
  id: string,
  compile: CompileRules,
): void {
  db.transaction(() => {
    deleteRow(db, { organizationId, subjectId }, id, rulePartsOf(db));
    recompile(db, organizationId, subjectId, compile);
  });
}

/** A key, a member, a group or an organization that has rules. */
export interface RuledSubject {
  readonly id: string;
  readonly scope: Scope;
}

/** Finds the subject of a rule; undefined when the organization has no rule of that id. */
export const findSubjectOfRule = (db: Database, organizationId: string, ruleId: string): RuledSubject | undefined =>
  db.get(
    build
      .selectFrom('rules')
      .select(['subjectId as id', 'scope'])
      .where('organizationId', '=', organizationId)
      .where('id', '=', ruleId),
  );

/**
 * Everyone in the organization who has rules: itself, present groups and members, keys that are not deleted. At most one row each.
 * @param managedBy only those who have rules that this policy folder states, or, if null, rules that none does
 */
export function listRuledSubjects(db: Database, organizationId: string, managedBy?: string | null): RuledSubject[] {
  const ruled = build
    .selectFrom('rules')
    .leftJoin('keys', (join) =>
      join.onRef('keys.id', '=', 'rules.subjectId').onRef('keys.organizationId', '=', 'rules.organizationId'),
    )
    .leftJoin('members', (join) =>
      join.onRef('members.id', '=', 'rules.subjectId').onRef('members.organizationId', '=', 'rules.organizationId'),
    )
    .leftJoin('groups', (join) =>
      join.onRef('groups.id', '=', 'rules.subjectId').onRef('groups.organizationId', '=', 'rules.organizationId'),
    )
    .select(['rules.subjectId as id', 'rules.scope'])
    .distinct()
    .where('rules.organizationId', '=', organizationId)
    .where('keys.deletedAt', 'is', null)
    .where('members.removedAt', 'is', null)
    .where('groups.deletedAt', 'is', null)
    .orderBy(sql`instr('organization group member key', rules.scope)`)
    .orderBy('rules.subjectId');
  return db.all(
    managedBy === undefined ? ruled : ruled.where('rules.managedBy', managedBy === null ? 'is' : '=', managedBy),
  );
}

/** Long texts that are remembered; the longest have some 3 MB. */
const MAX_ASSEMBLED = 16;

/** The compiled rules of a subject. */
export interface CompiledRules {
  readonly text: string;
  /** The stored form of the text, for documents that are composed of it (text-parts.ts). */
  readonly stored: string;
}

/** Reads the compiled rules of the subjects of a request, short ones in one statement; for the hot path prepared once by their number. */
export function prepareSubjectRules(
  db: Database,
): (organizationId: string, subjectIds: readonly string[]) => Map<string, CompiledRules> {
  const parts = prepareTextParts(db, 'compiled_parts');
  /** Parts never change: a long text that many keys share is put together once. */
  const assembled = new LRUCache<string, string>({ max: MAX_ASSEMBLED });
  const textOf = (stored: string): string => {
    if (!isInParts(stored)) return stored;
    const known = assembled.get(stored);
    if (known !== undefined) return known;
    const text = parts.read(stored);
    assembled.set(stored, text);
    return text;
  };
  const prepareFor = (count: number) =>
    prepare(
      db.connection,
      build
        .selectFrom('subject_rules')
        .select(['subjectId', 'compiledJson'])
        .where(
          'subjectId',
          'in',
          Array.from({ length: count }, (_, index) => bind<string>(`subject${index}`)),
        )
        .where('organizationId', '=', bind<string>('organizationId'))
        .compile(),
    );
  const statements = new Map<number, ReturnType<typeof prepareFor>>();
  return (organizationId, subjectIds) => {
    const { length } = subjectIds;
    const statement = getOrMake(statements, length, () => prepareFor(length));
    const values: Record<string, string> = { organizationId };
    for (const [index, id] of subjectIds.entries()) values[`subject${index}`] = id;
    const rows = statement.all(values);
    const rules = new Map(
      rows.map(({ subjectId, compiledJson: stored }) => [subjectId, { text: textOf(stored), stored }]),
    );
    const missing = subjectIds.find((id) => !rules.has(id));
    if (missing !== undefined) throw new Error(`The organization has no subject ${missing}.`);
    return rules;
  };
}

/** Reads the organization's rule revision, which grows with every write of a rule; for the hot path. */
export function createRuleRevision(db: Database, freshness: Freshness): (organizationId: string) => number {
  const known = new FreshReads<number>(freshness, 1000);
  const statement = prepare(
    db.connection,
    build.selectFrom('organizations').select('ruleRevision').where('id', '=', bind<string>('organizationId')).compile(),
  );
  return (organizationId) => {
    const remembered = known.get(organizationId);
    if (remembered !== undefined) return remembered;
    const epoch = freshness.lastEpoch();
    const row = statement.get({ organizationId });
    if (row === undefined) throw new Error(`There is no organization ${organizationId}.`);
    known.set(organizationId, row.ruleRevision, epoch);
    return row.ruleRevision;
  };
}
