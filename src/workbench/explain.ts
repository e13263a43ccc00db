import { comparePrice } from '../catalog/cheapest.ts';
import { actionOf, permittedIds } from '../core/permitted-ids.ts';
import { canonicalAddress } from '../domain/client-ip.ts';
import { invalidRequest, modelNotFound } from '../domain/errors.ts';
import type { Mapping } from '../domain/model.ts';
import type { AccessRule, EvaluateCall, ExplainedAlternative, Explanation, PolicyInput } from '../generated/types.ts';
import { compileSubjectRules, dataDocument } from '../policy/data-document.ts';
import { denialMessage } from '../policy/denial-message.ts';
import { denialReason } from '../policy/denial-reason.ts';
import { inputDocument } from '../policy/input-document.ts';
import type { Pdp } from '../policy/pdp.ts';
import { type JudgeWithout, smallestFlips } from './smallest-flips.ts';
import { activeMappings, type World, type WorldSubject } from './world.ts';

/** A request that is judged and not made. */
export interface AskedCall {
  readonly action: PolicyInput['action'];
  readonly model: string;
  readonly candidates: readonly Mapping[];
  /** Canonical; null when unknown. */
  readonly address: string | null;
}

/** What the fields of a request mean. @throws ApiError 404 for an unknown model, 400 for what is no address; `place` is where it stands */
export function readCall({ catalog }: World, call: EvaluateCall, place = ''): AskedCall {
  const model = call.provider === undefined ? call.model : `${call.provider}/${call.model}`;
  const candidates = catalog.resolve(model);
  if (candidates === undefined) throw modelNotFound(`The model \`${model}\` does not exist.`);
  const [first] = candidates;
  if (first === undefined) throw modelNotFound(`The model \`${model}\` is deactivated.`);
  const address = call.address === undefined || call.address === null ? null : canonicalAddress(call.address);
  if (address === null && typeof call.address === 'string') {
    throw invalidRequest(`${place}/address ("${call.address}") is not an IPv4 or IPv6 address.`, `${place}/address`);
  }
  return { action: call.action ?? actionOf(first), model, candidates, address };
}

/**
 * What becomes of a request: every violation in every scope, the smallest sets of rules without which the outcome would be the
 * other one, and the nearest permitted alternative. @throws PolicyFailure
 */
export function explain(
  pdp: Pdp,
  world: World,
  subjects: readonly WorldSubject[],
  call: AskedCall,
  policyRevision: string,
): Explanation {
  const bare = subjects.map(({ scope, id }) => ({ scope, id }));
  const input = inputDocument(call.action, call.address, bare, call.candidates);
  const judge: JudgeWithout = (without) => pdp.decide(input, documentOf(subjects, without));
  const decision = judge(new Set());
  const isDenied = decision.permitted.length === 0;
  const flips = smallestFlips(judge, subjects, input, decision);
  const named = new Set([
    ...decision.violations.flatMap(({ ruleIds }) => ruleIds),
    ...flips.sets.flat(),
    ...(decision.shadow?.would_deny ?? []),
    ...(decision.shadow?.would_allow ?? []),
  ]);
  return {
    outcome: isDenied ? 'deny' : 'permit',
    reason: isDenied ? denialMessage(denialReason(input, decision)) : null,
    request: { action: call.action, model: call.model, address: call.address },
    candidates: call.candidates.map(({ id }) => id),
    ...decision,
    rules: subjects.flatMap(({ scope, rules }) =>
      rules.filter(({ id }) => named.has(id)).map(({ id, ruleType }): AccessRule => ({ id, scope, ruleType })),
    ),
    flips,
    alternative: isDenied ? nearest(pdp, world, subjects, call) : null,
    policyRevision,
  };
}

const documentOf = (subjects: readonly WorldSubject[], without: ReadonlySet<string>) =>
  dataDocument(
    subjects.map(({ id, rules }) => ({
      id,
      rules: compileSubjectRules(rules.filter((rule) => !without.has(rule.id))),
    })),
  );

const NEARNESS = ['same model', 'same family', 'same modalities'] as const;

/** What could be called instead, for the same action: same model elsewhere, then same family, then same modalities, cheapest first. */
function nearest(
  pdp: Pdp,
  world: World,
  subjects: readonly WorldSubject[],
  { action, candidates, address }: AskedCall,
): ExplainedAlternative | null {
  const families = new Map(world.catalog.models().map(({ id, family }) => [id, family]));
  const distance = (mapping: Mapping): number => {
    const tests: ((candidate: Mapping) => boolean)[] = [
      ({ modelId }) => modelId === mapping.modelId,
      ({ modelId }) => families.get(modelId) === families.get(mapping.modelId),
      (candidate) => modalities(candidate) === modalities(mapping),
    ];
    return tests.findIndex((test) => candidates.some(test));
  };
  const bare = subjects.map(({ scope, id }) => ({ scope, id }));
  const near = activeMappings(world).filter((mapping) => actionOf(mapping) === action && distance(mapping) >= 0);
  const permitted = permittedIds(pdp, documentOf(subjects, new Set()), { subjects: bare, clientIp: address }, near);
  const [best] = near
    .filter(({ id }) => permitted.has(id))
    .sort((a, b) => distance(a) - distance(b) || comparePrice(a, b));
  const nearness = best === undefined ? undefined : NEARNESS[distance(best)];
  if (best === undefined || nearness === undefined) return null;
  return { model: best.modelId, provider: best.providerId, nearness };
}

const modalities = ({ inputModalities, outputModalities }: Mapping): string =>
  JSON.stringify([inputModalities.toSorted(), outputModalities.toSorted()]);
