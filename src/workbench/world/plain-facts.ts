import { policyTime, type RequestFacts, worstCases } from '../../core/call.ts';
import { chatDemand, type Demand, imageDemand, MODERATION_DEMAND } from '../../core/worst-case.ts';
import { invalidRequest } from '../../domain/errors.ts';
import type { Mapping } from '../../domain/model.ts';
import type { FixtureFacts, PolicyInput } from '../../generated/types.ts';

/** Of a short chat on a Monday. */
export const PLAIN_FACTS: RequestFacts = {
  time: policyTime(Date.UTC(2026, 0, 5, 12)),
  door: 'rest',
  stream: false,
  text_bytes: 100,
  modalities: [],
  tool_names: [],
  worst_case_cost: {},
  meta: {},
};

/** Where a model's longest answer is not known, as `DEFAULT_MAX_OUTPUT_TOKENS` is unless it is set. */
const LONGEST_ANSWER = 16_384;

/** What a short request may cost at each candidate. */
export function plainWorstCases(
  action: PolicyInput['action'],
  candidates: readonly Mapping[],
  { text_bytes: textTokens }: Pick<RequestFacts, 'text_bytes'>,
): RequestFacts['worst_case_cost'] {
  const demands: Record<PolicyInput['action'], Demand> = {
    chat: chatDemand({ model: '', messages: [] }, LONGEST_ANSWER, 0),
    image: imageDemand({ model: '', prompt: '' }),
    moderation: MODERATION_DEMAND,
  };
  return worstCases(candidates, { ...demands[action], textTokens });
}

/** Facts as a fixture has them, the plain ones filled in. @throws ApiError 400 for a time that is none */
export function factsOf(facts: FixtureFacts = {}): RequestFacts {
  const time = facts.time === undefined ? undefined : Date.parse(facts.time);
  if (Number.isNaN(time)) throw invalidRequest('It must be a time such as 2026-01-31T12:00:00Z.', '/time');
  return {
    time: time === undefined ? PLAIN_FACTS.time : policyTime(time),
    door: facts.door ?? PLAIN_FACTS.door,
    stream: facts.stream ?? PLAIN_FACTS.stream,
    text_bytes: facts.textBytes ?? PLAIN_FACTS.text_bytes,
    modalities: facts.modalities ?? PLAIN_FACTS.modalities,
    tool_names: facts.toolNames ?? PLAIN_FACTS.tool_names,
    worst_case_cost: facts.worstCaseCost ?? PLAIN_FACTS.worst_case_cost,
    meta: facts.meta ?? PLAIN_FACTS.meta,
  };
}
