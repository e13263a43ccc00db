import type { Insertable, Selectable, Updateable } from 'kysely';
import { notFound } from '../domain/errors.ts';
import type { Database } from './database.ts';
import { build } from './sql.ts';
import type { RulesTable, Scope } from './tables.ts';

/** A rule as it is stored. `ruleValue` is what was written, `canonicalValue` what is compiled. */
export interface RuleRecord {
  readonly id: string;
  readonly organizationId: string;
  /** The key, member or organization that it binds. */
  readonly subjectId: string;
  readonly scope: Scope;
  readonly ruleType: string;
  readonly ruleValue: unknown;
  readonly canonicalValue: unknown;
  readonly mode: 'enforce' | 'report';
  readonly status: 'active' | 'inactive';
  readonly description: string | null;
  readonly createdAt: number;
  readonly updatedAt: number;
}

export type NewRule = Omit<RuleRecord, 'organizationId' | 'subjectId' | 'scope' | 'createdAt' | 'updatedAt'>;
export type RuleChanges = Partial<Omit<NewRule, 'id'>>;

/** Makes the compiled text of a subject of all its rules, active or not, in the order of their ids. Given by admin/. */
export type CompileRules = (rules: readonly RuleRecord[]) => string;

const toRecord = (row: Selectable<RulesTable>): RuleRecord => ({
  id: row.id,
  organizationId: row.organization_id,
  subjectId: row.subject_id,
  scope: row.scope,
  ruleType: row.rule_type,
  ruleValue: JSON.parse(row.rule_value_json),
  canonicalValue: JSON.parse(row.canonical_json),
  mode: row.mode,
  status: row.status,
  description: row.description,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
});

/** All rules of a subject, oldest first. At most 200 (decisions.md, section 9), so there are no pages. */
export function listRules(db: Database, organizationId: string, subjectId: string): RuleRecord[] {
  return db
    .all(
      build
        .selectFrom('rules')
        .selectAll()
        .where('organization_id', '=', organizationId)
        .where('subject_id', '=', subjectId)
        .orderBy('id'),
    )
    .map(toRecord);
}

/** The rule, or a 404 when this subject has none of that id. */
export function getRule(db: Database, organizationId: string, subjectId: string, id: string): RuleRecord {
  const row = db.get(
    build
      .selectFrom('rules')
      .selectAll()
      .where('organization_id', '=', organizationId)
      .where('subject_id', '=', subjectId)
      .where('id', '=', id),
  );
  if (row === undefined) throw notFound('There is no such rule.');
  return toRecord(row);
}

/** Compiles the subject's rules again and raises the organization's rule revision, in the transaction of the write. */
function recompile(db: Database, organizationId: string, subjectId: string, compile: CompileRules): void {
  const organization = db.get(
    build
      .updateTable('organizations')
      .set((row) => ({ rule_revision: row('rule_revision', '+', 1) }))
      .where('id', '=', organizationId)
      .returning('rule_revision'),
  );
  const changed = db.run(
    build
      .updateTable('subject_rules')
      .set({
        compiled_json: compile(listRules(db, organizationId, subjectId)),
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
    const row: Insertable<RulesTable> = {
      id: rule.id,
      organization_id: organizationId,
      subject_id: subjectId,
      scope: getScope(db, organizationId, subjectId),
      rule_type: rule.ruleType,
      rule_value_json: JSON.stringify(rule.ruleValue),
      canonical_json: JSON.stringify(rule.canonicalValue),
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
  const set: Updateable<RulesTable> = { updated_at: now };
  if (changes.ruleType !== undefined) set.rule_type = changes.ruleType;
  if (changes.ruleValue !== undefined) set.rule_value_json = JSON.stringify(changes.ruleValue);
  if (changes.canonicalValue !== undefined) set.canonical_json = JSON.stringify(changes.canonicalValue);
  if (changes.mode !== undefined) set.mode = changes.mode;
  if (changes.status !== undefined) set.status = changes.status;
  if (changes.description !== undefined) set.description = changes.description;
  return db.transaction(() => {
    getRule(db, organizationId, subjectId, id);
    db.run(
      build
        .updateTable('rules')
        .set(set)
        .where('organization_id', '=', organizationId)
        .where('subject_id', '=', subjectId)
        .where('id', '=', id),
    );
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
    const deleted = db.run(
      build
        .deleteFrom('rules')
        .where('organization_id', '=', organizationId)
        .where('subject_id', '=', subjectId)
        .where('id', '=', id),
    );
    if (deleted !== 1) throw notFound('There is no such rule.');
    recompile(db, organizationId, subjectId, compile);
  });
}
