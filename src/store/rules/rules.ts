import type { Insertable } from 'kysely';
import { notFound } from '../../domain/errors.ts';
import type { Database } from '../db/database.ts';
import { build } from '../db/sql.ts';
import type { RulesTable, Scope } from '../db/tables.ts';
import { prepareTextParts } from '../db/text-parts.ts';
import {
  changedColumns,
  type NewRule,
  type RuleChanges,
  type RuleRecord,
  type RuleRow,
  rulePartsOf,
  textsOf,
  toRule,
} from './rule-columns.ts';

export type { NewRule, RuleChanges, RuleRecord };

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
        .where('organization_id', '=', organizationId)
        .where('subject_id', '=', subjectId)
        .orderBy('id'),
    )
    .map((row) => toRule(row, parts));
}

function getRow(db: Database, organizationId: string, subjectId: string, id: string): RuleRow {
  const row = db.get(
    build
      .selectFrom('rules')
      .selectAll()
      .where('organization_id', '=', organizationId)
      .where('subject_id', '=', subjectId)
      .where('id', '=', id),
  );
  if (row === undefined) throw notFound('There is no such rule.');
  return row;
}

/** The rule, or a 404 when this subject has none of that id. */
export const getRule = (db: Database, organizationId: string, subjectId: string, id: string): RuleRecord =>
  toRule(getRow(db, organizationId, subjectId, id), rulePartsOf(db));

/** Compiles the subject's rules again and raises the organization's rule revision, in the transaction of the write. */
function recompile(db: Database, organizationId: string, subjectId: string, compile: CompileRules): void {
  const organization = db.get(
    build
      .updateTable('organizations')
      .set((row) => ({ rule_revision: row('rule_revision', '+', 1) }))
      .where('id', '=', organizationId)
      .returning('rule_revision'),
  );
  const compiled = compile(listRules(db, organizationId, subjectId));
  const changed = db.run(
    build
      .updateTable('subject_rules')
      .set({
        compiled_json: prepareTextParts(db, 'compiled_parts').store(subjectId, compiled),
        revision: organization?.rule_revision ?? 0,
      })
      .where('organization_id', '=', organizationId)
      .where('subject_id', '=', subjectId),
  );
  if (changed !== 1) throw notFound('There is no such key, member or organization.');
}

/** What the subject is, or a 404 when the organization has no such key, member or itself. */
function getScope(db: Database, organizationId: string, subjectId: string): Scope {
  const row = db.get(
    build
      .selectFrom('subject_rules')
      .select('scope')
      .where('organization_id', '=', organizationId)
      .where('subject_id', '=', subjectId),
  );
  if (row === undefined) throw notFound('There is no such key, member or organization.');
  return row.scope;
}

/** Stores a new rule of a key, member or organization, compiled in the same transaction. Unknown subject: 404. */
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
    const row: Insertable<RulesTable> = {
      id: rule.id,
      organization_id: organizationId,
      subject_id: subjectId,
      scope: getScope(db, organizationId, subjectId),
      rule_type: rule.ruleType,
      rule_value_json: parts.store(rule.id, JSON.stringify(rule.ruleValue)),
      mode: rule.mode,
      status: rule.status,
      description: rule.description,
      created_at: now,
      updated_at: now,
    };
    db.run(build.insertInto('rules').values(row));
    recompile(db, organizationId, subjectId, compile);
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
    const before = getRow(db, organizationId, subjectId, id);
    db.run(
      build
        .updateTable('rules')
        .set(changedColumns(id, changes, parts, now))
        .where('organization_id', '=', organizationId)
        .where('subject_id', '=', subjectId)
        .where('id', '=', id),
    );
    parts.drop(textsOf(before), textsOf(getRow(db, organizationId, subjectId, id)));
    recompile(db, organizationId, subjectId, compile);
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
    rulePartsOf(db).drop(textsOf(getRow(db, organizationId, subjectId, id)), []);
    db.run(
      build
        .deleteFrom('rules')
        .where('organization_id', '=', organizationId)
        .where('subject_id', '=', subjectId)
        .where('id', '=', id),
    );
    recompile(db, organizationId, subjectId, compile);
  });
}
