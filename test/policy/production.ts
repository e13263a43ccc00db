/** The production path of a decision, from rule records to the answer of the compiled policy. */
import type { PolicyDecision, PolicyInput } from '../../src/generated/types.ts';
import { readBundle } from '../../src/policy/bundle.ts';
import { compileSubjectRules, dataDocument } from '../../src/policy/data-document.ts';
import { createPdp, type Pdp } from '../../src/policy/pdp.ts';
import type { OracleRequest, OracleSubject } from './oracle.ts';

const pdp = createPdp(readBundle());

export function dataOf(subjects: readonly OracleSubject[]) {
  return dataDocument(subjects.map(({ id, rules }) => ({ id, rules: compileSubjectRules(rules) })));
}

export function inputOf({ action, clientIp, subjects, candidates }: OracleRequest): PolicyInput {
  return {
    action,
    client_ip: clientIp,
    subjects: subjects.map(({ scope, id }) => ({ scope, id })),
    candidates: [...candidates],
  };
}

/**
 * The decision with its sets in the oracle's order; the lists inside a violation stay as the policy sorted them.
 * @param by the policy of this installation, or another
 */
export function decide(request: OracleRequest, by: Pdp = pdp): PolicyDecision {
  const { permitted, violations, shadow } = by.decide(inputOf(request), dataOf(request.subjects));
  return {
    permitted: permitted.toSorted(),
    violations: violations.map(inOracleOrder).sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)),
    ...(shadow && {
      shadow: {
        permitted: shadow.permitted.toSorted(),
        would_deny: shadow.would_deny.toSorted(),
        would_allow: shadow.would_allow.toSorted(),
      },
    }),
  };
}

function inOracleOrder({
  scope,
  group,
  kind,
  effect,
  candidate,
  ruleIds,
  values,
}: PolicyDecision['violations'][number]) {
  return {
    scope,
    ...(group !== undefined && { group }),
    kind,
    effect,
    ...(candidate !== undefined && { candidate }),
    ruleIds,
    values,
  };
}

/** What the entrypoint `permitted` answers, sorted. */
export function permitted(request: OracleRequest): string[] {
  return pdp.permitted(inputOf(request), dataOf(request.subjects)).toSorted();
}
