import type { Selectable, Updateable } from 'kysely';
import type { Database } from '../db/database.ts';
import type { RulesTable, Scope } from '../db/tables.ts';
import { prepareTextParts, type TextParts } from '../db/text-parts.ts';

/** A rule as it is stored. */
export interface RuleRecord {
  readonly id: string;
  readonly organizationId: string;
  /** The key, member or organization that it binds. */
  readonly subjectId: string;
  readonly scope: Scope;
  readonly ruleType: string;
  /** As written; what is compiled is its canonical form. */
  readonly ruleValue: unknown;
  readonly mode: 'enforce' | 'report';
  readonly status: 'active' | 'inactive';
  readonly description: string | null;
  readonly createdAt: number;
  readonly updatedAt: number;
}

export type NewRule = Omit<RuleRecord, 'organizationId' | 'subjectId' | 'scope' | 'createdAt' | 'updatedAt'>;
export type RuleChanges = Partial<Omit<NewRule, 'id'>>;

export type RuleRow = Selectable<RulesTable>;

/** The parts of long values. */
export const rulePartsOf = (db: Database): TextParts => prepareTextParts(db, 'rule_parts');

export const toRule = (row: RuleRow, parts: TextParts): RuleRecord => ({
  id: row.id,
  organizationId: row.organization_id,
  subjectId: row.subject_id,
  scope: row.scope,
  ruleType: row.rule_type,
  ruleValue: JSON.parse(parts.read(row.rule_value_json)),
  mode: row.mode,
  status: row.status,
  description: row.description,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
});

/** What is stored of the rule's texts. */
export const textsOf = (row: RuleRow): string[] => [row.rule_value_json];

export function changedColumns(
  id: string,
  changes: RuleChanges,
  parts: TextParts,
  now: number,
): Updateable<RulesTable> {
  const set: Updateable<RulesTable> = { updated_at: now };
  const { ruleType, ruleValue, mode, status, description } = changes;
  if (ruleType !== undefined) set.rule_type = ruleType;
  if (ruleValue !== undefined) set.rule_value_json = parts.store(id, JSON.stringify(ruleValue));
  if (mode !== undefined) set.mode = mode;
  if (status !== undefined) set.status = status;
  if (description !== undefined) set.description = description;
  return set;
}
