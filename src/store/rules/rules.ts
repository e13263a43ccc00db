import { isDeepStrictEqual } from 'node:util';
import { notFound } from '../../domain/errors.ts';
import type { Scope } from '../../generated/types.ts';
import type { Database } from '../db/database.ts';
import { countRows } from '../db/page.ts';
import { raiseRuleRevision } from '../db/rule-revision.ts';
import { build } from '../db/sql.ts';
import type { Row, RulesTable } from '../db/tables.ts';
import { prepareTextParts, type TextParts } from '../db/text-parts.ts';

/** A rule as it is stored; its value is as written, what is compiled is the canonical form. */
export type RuleRecord = Omit<Row<RulesTable>, 'ruleValueJson'> & { readonly ruleValue: unknown };

/** What it would have changed in mode `report`, since when, and as which it has been since then. */
type Reported = 'reportsSince' | 'reportRevision' | 'wouldDeny' | 'wouldAllow' | 'lastSeenAt';

export type NewRule = Omit<RuleRecord, 'organizationId' | 'subjectId' | 'scope' | 'createdAt' | 'updatedAt' | Reported>;
export type RuleChanges = Partial<Omit<NewRule, 'id'>>;

/** The parts of long values. */
const rulePartsOf = (db: Database): TextParts => prepareTextParts(db, 'rule_parts');

const toRule = ({ ruleValueJson, ...row }: Row<RulesTable>, parts: TextParts): RuleRecord => ({
  ...row,
  ruleValue: JSON.parse(parts.read(ruleValueJson)),
});

/** Makes the compiled text of a subject of all its rules, active or not, in the order of their ids. Given by admin/. */
export type CompileRules = (rules: readonly RuleRecord[]) => string;

/** All rules of a subject, oldest first. At most 200 (policy/README.md, "Writing a rule"), so there are no pages. */
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

/** How many rules of the organization report, but for one. */
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
 * @returns the revision
 */
function recompile(db: Database, organizationId: string, subjectId: string, compile: CompileRules): number {
  const revision = raiseRuleRevision(db, organizationId);
  const compiled = compile(listRules(db, organizationId, subjectId));
  const changed = db.run(
    build
      .updateTable('subject_rules')
      .set({
        compiledJson: prepareTextParts(db, 'compiled_parts').store(subjectId, compiled),
        revision,
      })
      .where('organizationId', '=', organizationId)
      .where('subjectId', '=', subjectId),
  );
  if (changed !== 1) throw notFound('There is no such key, member, group or organization.');
  return revision;
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

/** Whether what a rule reported before a change holds after it. */
const reportsAlike = (before: RuleRecord, after: RuleRecord): boolean =>
  reports(before) === reports(after) &&
  (!reports(after) || (before.ruleType === after.ruleType && isDeepStrictEqual(before.ruleValue, after.ruleValue)));

/** What the subject is, or a 404 when the organization has no such key, member, group or itself. */
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
    const parts = rulePartsOf(db);
    const { ruleValue, ...columns } = rule;
    const row = {
      ...columns,
      organizationId,
      subjectId,
      scope: getScope(db, organizationId, subjectId),
      ruleValueJson: parts.store(rule.id, JSON.stringify(ruleValue)),
      createdAt: now,
      updatedAt: now,
    };
    db.run(build.insertInto('rules').values(row));
    const revision = recompile(db, organizationId, subjectId, compile);
    const stored = getRule(db, organizationId, subjectId, rule.id);
    if (!reports(stored)) return stored;
    beginReports(db, stored, revision, now);
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
    const parts = rulePartsOf(db);
    const present = getRow(db, organizationId, subjectId, id);
    const before = present.ruleValueJson;
    const was = toRule(present, parts);
    const { ruleValue, ...columns } = changes;
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
    const revision = recompile(db, organizationId, subjectId, compile);
    const is = getRule(db, organizationId, subjectId, id);
    if (reportsAlike(was, is)) return is;
    beginReports(db, is, revision, now);
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
    rulePartsOf(db).drop([getRow(db, organizationId, subjectId, id).ruleValueJson], []);
    db.run(
      build
        .deleteFrom('rules')
        .where('organizationId', '=', organizationId)
        .where('subjectId', '=', subjectId)
        .where('id', '=', id),
    );
    recompile(db, organizationId, subjectId, compile);
  });
}
