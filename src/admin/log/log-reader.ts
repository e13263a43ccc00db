import { ApiError } from '../../domain/errors.ts';
import type { IamRule, RuleEvidence } from '../../generated/types.ts';
import type { Database } from '../../store/db/database.ts';
import type { DatabaseThread } from '../../store/db/database-thread.ts';
import type { PageRequest } from '../../store/db/records.ts';
import type { CallFilter } from '../../store/ledger/call-log.ts';
import { countOtherReportRules, getRule } from '../../store/rules/rules.ts';
import type { Actor } from '../audit/audit-trail.ts';
import { ruleView } from '../rules/iam-rules.ts';
import { getRuleSubject, type RuleOwner } from '../rules/rule-owner.ts';
import { type LogRequest, type RefusedListRequest, type SeenBy, seenBy } from './log-query.ts';
import { listDecisions } from './log-view.ts';

export type LogQuestion =
  | (LogRequest & { readonly what: 'calls' | 'decisions' })
  | { readonly what: 'call' | 'decision' | 'request'; readonly by: SeenBy; readonly id: string }
  | (RefusedListRequest & { readonly what: 'requests' })
  | { readonly what: 'evidence'; readonly request: EvidenceRequest };

/** Reads calls and decisions outside the serving thread. */
export interface LogReader {
  /** JSON. @param organizationId of who asks. @throws ApiError: of the question itself, 503 when too many wait, 504 when it takes too long */
  read(organizationId: string, question: LogQuestion): Promise<Uint8Array>;
}

const LIMIT_MS = 30_000;

const tooSlow = (): ApiError =>
  new ApiError(
    504,
    'report_timeout',
    `The search takes longer than ${LIMIT_MS} ms: ask for less, or use the command line.`,
  );

export const createLogReader = (reader: DatabaseThread): LogReader => ({
  read: (organizationId, question) => reader.ask(organizationId, question, { limitMs: LIMIT_MS, tooSlow }),
});

/** A call is decided by a rule within this time of its id, in ms. */
const MINUTE = 60_000;

/** A rule whose evidence is asked for, and a search for it. */
interface EvidenceRequest {
  readonly rule: IamRule;
  readonly otherReportRules: number;
  /** Undefined: the rule does not report. */
  readonly search: LogRequest | undefined;
}

/** 404 for a rule that the owner does not have, or that the actor may not see. */
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
