import type { Catalog } from '../../catalog/catalog.ts';
import { AUTO, choicesFor, choose, nothingFits } from '../../core/auto.ts';
import type { RequestFacts } from '../../core/call.ts';
import { actionOf, OPERATIONS } from '../../core/operations.ts';
import { noModelServed } from '../../core/reach.ts';
import { type ListScope, permittedIds } from '../../core/reachable.ts';
import { doesNotServe, noCredential, retired, unknownModel } from '../../core/resolve.ts';
import { canonicalAddress } from '../../domain/address.ts';
import { invalidField } from '../../domain/errors.ts';
import { comparePrice, type Mapping } from '../../domain/model.ts';
import type { Alias } from '../../domain/provider.ts';
import { formatTime } from '../../domain/time.ts';
import type {
  EvaluateCall,
  ExplainedAlias,
  ExplainedAlternative,
  ExplainedFlips,
  Explanation,
  PolicyDecision,
  PolicyInput,
} from '../../generated/types.ts';
import { denialMessage, denialReason, type RuleNames } from '../../policy/denial.ts';
import { inputDocument } from '../../policy/input-document.ts';
import type { Pdp } from '../../policy/pdp.ts';
import { type Caller, credentialsIn, mappingsOf, meaningOfName } from '../world/candidates.ts';
import { factsOf, keySubjects, plainWorstCases, type World, type WorldKey, type WorldSubject } from '../world/world.ts';
import { documentOf, isEnforcedAllow, namedRules } from './access.ts';

/** A request that is judged and not made. */
interface JudgedCall {
  readonly action: PolicyInput['action'];
  readonly model: string;
  /** Those that serve the action and have a credential; where none has one, all that would be candidates if they had. */
  readonly candidates: readonly Mapping[];
  readonly withoutCredential: readonly Mapping[];
  /** The alias that `model` is; undefined: it is none. */
  readonly alias: Alias | undefined;
  readonly hasCredential: boolean;
  /** Canonical; null when unknown. */
  readonly address: string | null;
  readonly facts: RequestFacts;
}

/**
 * Reads the fields of a caller's request.
 * @param now epoch ms
 * @param place where the request stands.
 * @throws ApiError as the gateway: 404 for an unknown or retired model, 400 for one that cannot serve the action; 400 for a
 * text that is not an address
 */
export function readCall(world: World, caller: Caller, call: EvaluateCall, now: number, place = ''): JudgedCall {
  const address = readAddress(call, place);
  const meant = readCallMeaning(world, caller, call, now);
  const facts = factsOf({ time: formatTime(now), ...call.facts });
  const worstCases = call.facts?.worstCaseCost ?? plainWorstCases(meant.action, meant.candidates, facts);
  return { ...meant, address, facts: { ...facts, worst_case_cost: worstCases } };
}

type CallMeaning = Omit<JudgedCall, 'address' | 'facts'>;

function readCallMeaning(world: World, caller: Caller, call: EvaluateCall, now: number): CallMeaning {
  const model = call.provider === undefined ? call.model : `${call.provider}/${call.model}`;
  if (model === AUTO && (call.action ?? 'chat') === 'chat') return readAuto(world, caller, now);
  const found = meaningOfName(world, caller, model);
  if (found === undefined) {
    throw unknownModel(
      model,
      world.catalog.mappings().flatMap(({ names }) => names),
    );
  }
  const { mappings: meant, alias } = found;
  const credentials = credentialsIn(world);
  const [callable = [], withoutCredential = []] = [true, false].map((wanted) =>
    meant.filter((mapping) => credentials(caller, mapping) === wanted),
  );
  const hasCredential = callable.length > 0;
  const meantNow = hasCredential ? callable : withoutCredential;
  const [first] = meantNow;
  if (first === undefined) throw alias === undefined ? retired(model, world.catalog) : noModelServed(model);
  const action = call.action ?? actionOf(first);
  const serving = meantNow.filter((mapping) => OPERATIONS[action].gives(mapping));
  if (serving.length === 0 && hasCredential) throw doesNotServe(model, action);
  const candidates = serving.length > 0 ? serving : meantNow;
  return { action, model, alias, candidates, withoutCredential, hasCredential };
}

function readAddress({ address: text = null }: EvaluateCall, place: string): string | null {
  const address = text === null ? null : canonicalAddress(text);
  if (address !== null || text === null) return address;
  throw invalidField(`${place}/address`, 'is not an IPv4 or IPv6 address', { quoted: `"${text}"` });
}

/** Reads the candidates of `auto` for a short chat. @throws ApiError 404 as the gateway */
function readAuto(world: World, caller: Caller, now: number): CallMeaning {
  const credentials = credentialsIn(world);
  const callable = mappingsOf(world, caller.organizationId).filter((mapping) => credentials(caller, mapping));
  const candidates = choicesFor({ model: AUTO, messages: [] }, callable, now);
  if (candidates.length === 0) throw nothingFits();
  return { action: 'chat', model: AUTO, alias: undefined, candidates, withoutCredential: [], hasCredential: true };
}

/**
 * The outcome of a key's request: every violation in every scope, the smallest sets of rules without which the outcome would be
 * the other one, and the nearest permitted alternative. Without a credential it is the outcome with one.
 * @throws PolicyFailure
 */
export function explain(pdp: Pdp, world: World, key: WorldKey, call: JudgedCall, policyRevision: string): Explanation {
  const subjects = keySubjects(world, key);
  const scope: ListScope = {
    subjects: subjects.map(({ scope, id }) => ({ scope, id })),
    clientIp: call.address,
    facts: pdp.takesFacts ? { ...call.facts, key_tags: [...key.tags] } : undefined,
  };
  const candidates = judgedCandidates(pdp, subjects, scope, call);
  const input = inputDocument(call.action, call.address, scope.subjects, candidates, undefined, scope.facts);
  const judge: JudgeWithout = (without) =>
    pdp.decide(
      input,
      documentOf(subjects, ({ id }) => !without.has(id)),
    );
  const decision = judge(new Set());
  const flips = smallestFlips(judge, subjects, input, decision);
  const named = new Set([
    ...decision.violations.flatMap(({ ruleIds }) => ruleIds),
    ...flips.sets.flat(),
    ...(decision.shadow?.would_deny ?? []),
    ...(decision.shadow?.would_allow ?? []),
  ]);
  const names: RuleNames = new Map<string, string | null>([
    ...subjects.map(({ id, name }) => [id, name] as const),
    ...subjects.flatMap(({ rules }) => rules.map(({ id, description }) => [id, description] as const)),
  ]);
  const answer = answerOf(call, world.catalog, input, decision, names);
  return {
    ...answer,
    request: { action: call.action, model: call.model, address: call.address },
    ...(call.alias === undefined ? {} : { alias: aliasView(call.alias) }),
    candidates: candidates.map(({ id }) => id),
    ...(scope.facts === undefined ? {} : { facts: scope.facts }),
    withoutCredential: call.withoutCredential.map(({ id }) => id),
    ...decision,
    rules: namedRules(subjects, named),
    flips,
    alternative: answer.outcome === 'permit' ? null : nearest(pdp, world, key, call, scope),
    warnings: [],
    policyRevision,
  };
}

/** An alias in the words of the management API. */
const aliasView = ({ id, name, projectId, models, weights }: Alias): ExplainedAlias => ({
  id,
  name,
  projectId,
  models: [...models],
  weights: weights === null ? null : [...weights],
});

/** All of them, or those that `auto` chooses, which it does by the rules alone. */
function judgedCandidates(
  pdp: Pdp,
  subjects: readonly WorldSubject[],
  { facts: _, ...scope }: ListScope,
  { model, candidates }: JudgedCall,
): readonly Mapping[] {
  if (model !== AUTO) return candidates;
  const permitted = permittedIds(
    pdp,
    documentOf(subjects, () => true),
    scope,
    candidates,
  );
  return choose(candidates, ({ id }) => permitted.has(id));
}

/** The answer to the caller: as in the gateway, a credential comes before the policy. */
function answerOf(
  { model, hasCredential }: JudgedCall,
  catalog: Catalog,
  input: PolicyInput,
  decision: PolicyDecision,
  names: RuleNames,
): Pick<Explanation, 'outcome' | 'reason'> {
  if (!hasCredential) return { outcome: 'not_found', reason: noCredential(model, catalog).message };
  if (decision.permitted.length > 0) return { outcome: 'permit', reason: null };
  return { outcome: 'deny', reason: denialMessage(denialReason(input, decision), names) };
}

const NEARNESS = ['same model', 'same family', 'same modalities'] as const;

/** Finds alternatives for the same action: same model elsewhere, then same family, then same modalities, cheapest first. */
function nearest(
  pdp: Pdp,
  world: World,
  key: WorldKey,
  { action, candidates }: JudgedCall,
  scope: ListScope,
): ExplainedAlternative | null {
  const families = new Map(world.catalog.models().map(({ id, family }) => [id, family]));
  /** Nobody knows what a custom model is. */
  const familyOf = ({ custom, id, modelId }: Mapping): string | undefined => (custom ? id : families.get(modelId));
  const distance = (mapping: Mapping): number => {
    const tests: ((candidate: Mapping) => boolean)[] = [
      ({ custom, modelId }) => !custom && !mapping.custom && modelId === mapping.modelId,
      (candidate) => familyOf(candidate) === familyOf(mapping),
      (candidate) => modalities(candidate) === modalities(mapping),
    ];
    return tests.findIndex((test) => candidates.some(test));
  };
  const subjects = keySubjects(world, key);
  const hasCredential = credentialsIn(world);
  const near = mappingsOf(world, key.organizationId).filter(
    (mapping) => hasCredential(key, mapping) && actionOf(mapping) === action && distance(mapping) >= 0,
  );
  const permitted = permittedIds(
    pdp,
    documentOf(subjects, () => true),
    scope,
    near,
  );
  const [best] = near
    .filter(({ id }) => permitted.has(id))
    .sort((a, b) => distance(a) - distance(b) || comparePrice(a, b));
  const nearness = best === undefined ? undefined : NEARNESS[distance(best)];
  if (best === undefined || nearness === undefined) return null;
  return { model: best.modelId, provider: best.providerId, nearness };
}

const modalities = ({ inputModalities, outputModalities }: Mapping): string =>
  JSON.stringify([inputModalities.toSorted(), outputModalities.toSorted()]);

/** Judges a request without some of the rules. */
type JudgeWithout = (without: ReadonlySet<string>) => PolicyDecision;

/** Sets of rules that are tried at most, and the largest that is. */
const MAX_TRIES = 2000;
const MAX_SIZE = 3;

/** The smallest sets of rules without which the outcome would be the other one; every set is tried by the policy. @throws PolicyFailure */
function smallestFlips(
  judge: JudgeWithout,
  subjects: readonly WorldSubject[],
  input: PolicyInput,
  decision: PolicyDecision,
): ExplainedFlips {
  return decision.permitted.length === 0 ? opening(judge, input, decision) : closing(judge, subjects);
}

/**
 * A candidate passes when none of its violations is left, and a violation is gone only without all of its rules: a deny kind
 * then matches no more, an allow kind of which none matched then restricts no more.
 */
function opening(judge: JudgeWithout, input: PolicyInput, { violations }: PolicyDecision): ExplainedFlips {
  const sets = input.candidates.map(({ id }) => {
    const against = violations.filter(({ candidate }) => candidate === undefined || candidate === id);
    return [...new Set(against.flatMap(({ ruleIds }) => ruleIds))].sort();
  });
  const smallest = Math.min(...sets.map(({ length }) => length));
  const distinct = new Map(sets.filter(({ length }) => length === smallest).map((set) => [set.join(' '), set]));
  return {
    sets: [...distinct.values()].filter((set) => judge(new Set(set)).permitted.length > 0),
    exhaustive: true,
  };
}

/** Without a deny rule nothing is denied that was not, so allow rules are tried: sets in the order of their sizes. */
function closing(judge: JudgeWithout, subjects: readonly WorldSubject[]): ExplainedFlips {
  const allowing = subjects.flatMap(({ rules }) =>
    [...Map.groupBy(rules.filter(isEnforcedAllow), ({ ruleType }) => ruleType).values()]
      // Without its only rule a kind restricts no more.
      .filter(({ length }) => length > 1)
      .flatMap((ofKind) => ofKind.map(({ id }) => id)),
  );
  let tries = 0;
  for (let size = 1; size <= Math.min(MAX_SIZE, allowing.length); size += 1) {
    const found: string[][] = [];
    for (const set of subsets(allowing, size)) {
      tries += 1;
      if (tries > MAX_TRIES) return { sets: found, exhaustive: false };
      if (judge(new Set(set)).permitted.length === 0) found.push(set.toSorted());
    }
    if (found.length > 0) return { sets: found, exhaustive: true };
  }
  return { sets: [], exhaustive: allowing.length <= MAX_SIZE };
}

function* subsets(items: readonly string[], size: number): Generator<string[]> {
  if (size === 0) {
    yield [];
    return;
  }
  for (const [index, first] of items.entries()) {
    for (const rest of subsets(items.slice(index + 1), size - 1)) yield [first, ...rest];
  }
}
