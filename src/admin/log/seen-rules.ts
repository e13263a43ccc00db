import { RULE_TYPES } from '../../domain/iam-rule.ts';
import type { ManagedBy, PolicyData, SeenRule } from '../../generated/types.ts';
import { entryOf } from '../../lib/text.ts';
import { describedAt } from '../../store/audit/audit-entries.ts';
import type { Database } from '../../store/db/database.ts';
import { getDataDocument, type StoredDecision } from '../../store/ledger/references.ts';
import { findNames } from '../../store/tenants/tenants.ts';

/** The policy folder that an entry of the audit log names, if it names one; entries from before there were any do not. */
function managedIn(json: string | null): Pick<SeenRule, 'managedBy'> {
  const managedBy: ManagedBy | null = JSON.parse(json ?? 'null');
  return managedBy === null ? {} : { managedBy };
}

/**
 * The rules of the data document that a decision saw, outermost scope first. Rules keep no history: the description is that of the last
 * entry of the audit log before the decision, else the present one. Reads the whole document: not for the serving thread.
 */
export function listSeenRules(db: Database, { id, organizationId, createdAt, input }: StoredDecision): SeenRule[] {
  const { subjects }: PolicyData = JSON.parse(getDataDocument(db, organizationId, id));
  const rules = input.subjects.flatMap(({ scope, id: subjectId }) => {
    const of = entryOf(subjects, subjectId);
    if (of === undefined) return [];
    const { enforce, shadow = enforce, report_rules: reported = {} } = of;
    return RULE_TYPES.flatMap((ruleType) =>
      (shadow[ruleType]?.rules ?? []).map((rule) => {
        const mode: SeenRule['mode'] = entryOf(reported, rule) === true ? 'report' : 'enforce';
        return { id: rule, scope, subjectId, ruleType, mode };
      }),
    );
  });
  const names = findNames(
    db,
    organizationId,
    rules.flatMap((rule) => [rule.id, rule.subjectId]),
  );
  const named = rules.map((rule) =>
    rule.scope === 'group' ? { ...rule, groupName: names.get(rule.subjectId) ?? rule.subjectId } : rule,
  );
  return named.map((rule) => {
    const then = describedAt(db, organizationId, rule.id, createdAt);
    return then === undefined
      ? { ...rule, description: names.get(rule.id) ?? null, describedThen: false }
      : { ...rule, description: then.description, describedThen: true, ...managedIn(then.managedByJson) };
  });
}
