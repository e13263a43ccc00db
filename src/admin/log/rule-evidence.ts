import type { IamRule, RuleEvidence } from '../../generated/types.ts';
import type { Database } from '../../store/db/database.ts';
import type { PageRequest } from '../../store/db/records.ts';
import type { CallFilter } from '../../store/ledger/call-log.ts';
import { countOtherReportRules, getRule } from '../../store/rules/rules.ts';
import type { Actor } from '../audit/actor.ts';
import { ruleView } from '../rules/iam-rules.ts';
import { getRuleSubject, type RuleOwner } from '../rules/rule-owner.ts';
import { type LogRequest, seenBy } from './log-query.ts';
import { listDecisions } from './log-view.ts';

/** A call is decided by a rule within this time of its id, in ms. */
const MINUTE = 60_000;

/** A rule whose evidence is asked for, and a search for it. */
export interface EvidenceRequest {
  readonly rule: IamRule;
  readonly otherReportRules: number;
  /** Undefined: the rule does not report. */
  readonly search: LogRequest | undefined;
}

/** Of a rule that the owner has not 404, as is what the actor may not see of it. */
export function readEvidenceRequest(
  db: Database,
  actor: Actor,
  owner: RuleOwner,
  id: string,
  page: PageRequest,
): EvidenceRequest {
  const { organizationId } = actor;
  const subject = getRuleSubject(db, actor, owner);
  const record = getRule(db, organizationId, subject.id, id);
  const { reportsSince, reportRevision: revision } = record;
  const request = { rule: ruleView(record, subject), otherReportRules: countOtherReportRules(db, organizationId, id) };
  if (reportsSince === null || revision === null) return { ...request, search: undefined };
  const filter: CallFilter = {
    ...seenBy(actor),
    reportedBy: { ruleId: id, revision },
    from: reportsSince - MINUTE,
  };
  return { ...request, search: { filter, page } };
}

/** The decisions that the rule would have changed, newest first. Not for the serving thread. */
export const listEvidence = (db: Database, { search, ...rule }: EvidenceRequest): RuleEvidence => ({
  ...rule,
  ...(search === undefined ? { decisions: [], nextCursor: null } : listDecisions(db, search)),
});
