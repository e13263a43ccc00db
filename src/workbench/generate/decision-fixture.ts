import { formatUsdPerMillion } from '../../domain/limits.ts';
import type {
  FixtureExpectation,
  FixtureFacts,
  FixtureMapping,
  LoggedDecision,
  PolicyCandidate,
  PolicyFacts,
} from '../../generated/types.ts';
import { entryOf } from '../../lib/text.ts';
import { denialReason, permittedBy } from '../../policy/denial.ts';
import type { Pdp } from '../../policy/pdp.ts';
import { type GeneratedFixture, judged } from './generate-fixtures.ts';
import { mergeSlices, modelSlice, type RuleHolder, rulesAround, type Slice, subjectsGiven } from './generate-given.ts';

/**
 * A decision on record as a fixture: its candidates with the prices and tags of that time, the rules that bind its key today, and
 * for each candidate what was decided then.
 * @param holder the decision's key, with everyone whose rules bind it
 */
export function decisionFixture(decision: LoggedDecision, holder: RuleHolder): GeneratedFixture {
  const { id, timestamp, input, action, requestedModel } = decision;
  const { models, custom } = mergeSlices(input.candidates.map(sliceOf));
  const rules = rulesAround(holder);
  const { keys = {}, ...subjects } = subjectsGiven(holder, rules);
  const key = holder.key?.id ?? '';
  const tags = input.facts?.key_tags ?? [];
  return {
    name: `${action} with ${requestedModel} is decided as ${id} was`,
    description: `What was decided on ${timestamp}, by the rules that bind the key today.`,
    given: {
      catalog: { models, ...(Object.keys(custom).length === 0 ? {} : { custom }) },
      ...subjects,
      keys: { [key]: { ...entryOf(keys, key), ...(tags.length === 0 ? {} : { tags: [...tags] }) } },
    },
    requests: {
      ...(action === 'chat' ? {} : { action }),
      model: input.candidates.map((candidate) => candidate.id),
      address: input.client_ip ?? 'unknown',
      ...(input.facts === undefined ? {} : { facts: writtenFacts(input.facts) }),
    },
    expect: expectations(decision, new Set(rules.map((rule) => rule.id))),
  };
}

/** Candidates of a decision's fixture that the policy and the rules of today permit or deny otherwise. */
export function decidedOtherwise(pdp: Pdp, { input, violations }: LoggedDecision, fixture: GeneratedFixture): string[] {
  const permitted = permittedBy(input, violations);
  return judged(pdp, fixture)
    .filter(({ request, outcome }) => (outcome.outcome === 'permit') !== permitted.includes(request.labels.model))
    .map(({ request }) => request.labels.model);
}

/** Model of the catalogue, or of a custom provider, as the policy saw it. */
function sliceOf({ id, names, provider_names: providers, tags = [], ...priced }: PolicyCandidate): Slice {
  const { input_price: input, output_price: output, free } = priced;
  const mapping: FixtureMapping = {
    ...(input === undefined ? {} : { inputPricePerMillion: formatUsdPerMillion(BigInt(input)) }),
    ...(output === undefined ? {} : { outputPricePerMillion: formatUsdPerMillion(BigInt(output)) }),
    ...(free ? { free } : {}),
    ...(tags.length === 0 ? {} : { tags: [...tags] }),
  };
  if (providers.includes('custom')) return { models: {}, custom: { [id]: mapping }, names: [id] };
  const [model = id, ...others] = names.filter((name) => !name.includes('/'));
  return modelSlice(model, providers.slice(0, 1), others, mapping);
}

/** One entry for those that were permitted, and one for each that was not: what a caller who asks for it alone is told. @param rules ids */
function expectations({ input, violations }: LoggedDecision, rules: ReadonlySet<string>): FixtureExpectation[] {
  const permitted = permittedBy(input, violations);
  const denied = input.candidates.filter(({ id }) => !permitted.includes(id));
  return [
    ...(permitted.length === 0 ? [] : [{ model: permitted, permit: 'all' }]),
    ...denied.map((candidate) => {
      const own = violations.filter((violation) => (violation.candidate ?? candidate.id) === candidate.id);
      const reason = denialReason({ ...input, candidates: [candidate] }, { permitted: [], violations: own });
      const { scope, effect, kind, ruleIds } = reason;
      return {
        model: candidate.id,
        deny: kind === 'custom' ? 'custom' : `${scope} ${effect}_${kind}`,
        // A fixture can name only the rules that it gives.
        ...(kind !== 'custom' && ruleIds.every((id) => rules.has(id)) ? { rules: [...ruleIds] } : {}),
      };
    }),
  ];
}

const writtenFacts = (facts: PolicyFacts): FixtureFacts => ({
  time: new Date(facts.time.unix * 1000).toISOString(),
  door: facts.door,
  stream: facts.stream,
  textBytes: facts.text_bytes,
  modalities: [...facts.modalities],
  toolNames: [...facts.tool_names],
  worstCaseCost: { ...facts.worst_case_cost },
  meta: { ...facts.meta },
});
