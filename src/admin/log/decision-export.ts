import manifest from '../../../package.json' with { type: 'json' };
import { permittedBy } from '../../policy/denial.ts';
import type { Database } from '../../store/db/database.ts';
import { type CallFilter, type DecidedCall, searchDecided } from '../../store/ledger/call-log.ts';
import { timeOfNumber } from '../../store/ledger/statements.ts';
import { DECISION_PATH, decisionEntry } from './log-view.ts';

export interface ExportedDecision {
  /** JSON in one line, without its end. */
  readonly line: string;
  /** Epoch ms. */
  readonly time: number;
}

/** Decisions that are wanted, oldest first. Reads many rows: not for the serving thread. */
export function* exportDecisions(db: Database, filter: CallFilter): Generator<ExportedDecision> {
  for (const decided of searchDecided(db, filter)) {
    yield { line: decisionLine(decided), time: timeOfNumber(decided.call.number) };
  }
}

/**
 * A decision in the format of OPA's decision log, without the end of the line. Its fields that have no meaning here are left out; what it
 * has no field for stands under `portcullis`.
 */
export const decisionLine = (decided: DecidedCall): string => JSON.stringify(opaEntry(decided));

const LABELS = { app: manifest.name, version: manifest.version };

function opaEntry({ call, decision }: DecidedCall): object {
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
      organization_id: call.organizationId,
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
