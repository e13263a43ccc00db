import manifest from '../../../package.json' with { type: 'json' };
import { permittedBy } from '../../policy/permitted-by.ts';
import type { Database } from '../../store/db/database.ts';
import { type DecidedCall, listDecided } from '../../store/ledger/call-log.ts';
import { numbersFrom, timeOfNumber } from '../../store/ledger/call-number.ts';
import { DECISION_PATH, decisionEntry } from './log-view.ts';

/** Decisions in one query. */
const AT_ONCE = 500;

export interface ExportedDecision {
  /** JSON in one line, without its end. */
  readonly line: string;
  /** Epoch ms. */
  readonly time: number;
}

/**
 * The organization's decisions from a time to before another (epoch ms), oldest first, in the format of OPA's decision log. Its fields
 * that have no meaning here are left out; what it has no field for stands under `portcullis`.
 */
export function* exportDecisions(
  db: Database,
  organizationId: string,
  from: number,
  to: number,
): Generator<ExportedDecision> {
  const end = numbersFrom(to);
  for (let after = numbersFrom(from) - 1; ; ) {
    const decided = listDecided(db, organizationId, after, end, AT_ONCE);
    for (const each of decided) {
      yield { line: JSON.stringify(opaEntry(organizationId, each)), time: timeOfNumber(each.call.number) };
    }
    const last = decided.at(-1);
    if (last === undefined || decided.length < AT_ONCE) return;
    after = last.call.number;
  }
}

const LABELS = { app: manifest.name, version: manifest.version };

function opaEntry(organizationId: string, { call, decision }: DecidedCall): object {
  const entry = decisionEntry(call);
  const { input, violations, shadow, bundleDigest, ruleRevision, dataDigest } = decision;
  return {
    labels: LABELS,
    decision_id: entry.id,
    bundles: { policy: { revision: bundleDigest } },
    path: DECISION_PATH,
    input,
    result: { permitted: permittedBy(input, violations), violations, ...(shadow === null ? {} : { shadow }) },
    ...(entry.requestedBy === null ? {} : { requested_by: entry.requestedBy }),
    timestamp: entry.timestamp,
    portcullis: {
      organization_id: organizationId,
      project_id: entry.projectId,
      member_id: entry.memberId,
      key_id: entry.keyId,
      call_id: entry.callId,
      request_id: entry.requestId,
      client_request_id: entry.clientRequestId,
      requested_model: entry.requestedModel,
      outcome: entry.outcome,
      reason: entry.reason,
      rule_revision: ruleRevision,
      data_digest: dataDigest,
      provider: entry.provider,
      model: entry.model,
      status_code: entry.statusCode,
      error_code: entry.errorCode,
      cost: entry.cost,
    },
  };
}
