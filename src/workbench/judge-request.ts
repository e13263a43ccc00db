import { choose } from '../core/auto-choices.ts';
import { permittedIds } from '../core/permitted-ids.ts';
import type { PolicyRule } from '../domain/iam-rule.ts';
import type { Mapping } from '../domain/model.ts';
import type { PolicyDecision, PolicyInput, PolicySubject, RuleType } from '../generated/types.ts';
import { compileSubjectRules, type DataDocument, dataDocument } from '../policy/data-document.ts';
import { denialMessage, type RuleNames } from '../policy/denial-message.ts';
import { denialReason } from '../policy/denial-reason.ts';
import { inputDocument } from '../policy/input-document.ts';
import type { Pdp } from '../policy/pdp.ts';
import { PolicyFailure } from '../policy/policy-failure.ts';
import type { Given } from './fixture-given.ts';
import { type FixtureRequest, isAuto } from './fixture-requests.ts';
import type { GivenSubject } from './fixture-subjects.ts';

/** What came of a request. Lists are sorted. */
export interface Outcome {
  readonly outcome: 'permit' | 'deny' | 'not_found' | 'unavailable';
  /** Candidate ids. */
  readonly permitted: readonly string[];
  readonly reason?: OutcomeReason;
  /** The ids of all rules that a candidate violates, by candidate. */
  readonly violations: ReadonlyMap<string, readonly string[]>;
  /** With the report rules enforced as well; where there are none, as without them. */
  readonly shadow: NonNullable<PolicyDecision['shadow']>;
}

interface OutcomeReason {
  readonly scope: PolicySubject['scope'];
  readonly ruleType: RuleType;
  readonly ruleIds: readonly string[];
  /** What the caller is told. */
  readonly message: string;
}

type Subjects = readonly (PolicySubject & GivenSubject)[];

/** Whose rules a key's calls meet, outermost first: always an organization, an owner and the key. */
export function subjectsOf(given: Given, keyName: string): Subjects {
  const key = given.keys.get(keyName);
  if (key === undefined) throw new TypeError(`The fixture gives no key "${keyName}".`);
  const owner = key.owner === undefined ? undefined : given.members.get(key.owner);
  return [
    { ...given.organization, scope: 'organization', id: 'organization' },
    { rules: [], available: true, ...owner, scope: 'member', id: `member ${key.owner ?? `who owns ${keyName}`}` },
    { ...key, scope: 'key', id: `key ${keyName}` },
  ];
}

/**
 * The data document of a key's calls, as the gateway makes it. @param without a rule to leave out
 * @throws PolicyFailure when a subject's rules cannot be compiled
 */
export function dataFor(given: Given, keyName: string, without?: PolicyRule): DataDocument {
  const available = subjectsOf(given, keyName).filter((subject) => subject.available);
  return dataDocument(
    available.map(({ id, rules }) => ({
      id,
      rules: compileSubjectRules(rules.map(({ rule }) => rule).filter((rule) => rule !== without)),
    })),
  );
}

/** Judges one request by the compiled policy, as the gateway does. @param data of its key, where it is at hand */
export function judgeRequest(
  pdp: Pdp,
  given: Given,
  request: FixtureRequest,
  data = dataFor(given, request.labels.key),
): Outcome {
  const { action, clientIp, labels } = request;
  try {
    if (action === 'list') return listed(permittedOf(pdp, given, request, data));
    const candidates = calledCandidates(pdp, given, request, data);
    if (candidates.length === 0) return undecided('not_found');
    const subjects = bareSubjects(given, labels.key);
    const input = inputDocument(action, clientIp, subjects, candidates);
    return outcomeOf(input, pdp.decide(input, data), namesOf(subjectsOf(given, labels.key)));
  } catch (error) {
    if (!(error instanceof PolicyFailure)) throw error;
    return undecided('unavailable');
  }
}

const bareSubjects = (given: Given, key: string): PolicySubject[] =>
  subjectsOf(given, key).map(({ scope, id }) => ({ scope, id }));

const permittedOf = (pdp: Pdp, given: Given, request: FixtureRequest, data: DataDocument): Set<string> => {
  const { clientIp, candidates, labels } = request;
  return permittedIds(pdp, data, { subjects: bareSubjects(given, labels.key), clientIp }, candidates);
};

/** The candidates that are judged: all of the request's, or those that `auto` chooses among them. @throws PolicyFailure */
export function calledCandidates(
  pdp: Pdp,
  given: Given,
  request: FixtureRequest,
  data = dataFor(given, request.labels.key),
): readonly Mapping[] {
  if (!isAuto(request)) return request.candidates;
  const permitted = permittedOf(pdp, given, request, data);
  return choose(request.candidates, ({ id }) => permitted.has(id));
}

/** A list is answered, be it empty, and nobody says why something is missing in it. */
function listed(ids: ReadonlySet<string>): Outcome {
  const permitted = [...ids].sort();
  return {
    outcome: 'permit',
    permitted,
    violations: new Map(),
    shadow: { permitted, would_deny: [], would_allow: [] },
  };
}

const undecided = (outcome: 'not_found' | 'unavailable'): Outcome => ({
  outcome,
  permitted: [],
  violations: new Map(),
  shadow: { permitted: [], would_deny: [], would_allow: [] },
});

const namesOf = (subjects: Subjects): RuleNames =>
  new Map(subjects.flatMap(({ rules }) => rules.map(({ rule, description = null }) => [rule.id, description])));

function outcomeOf(input: PolicyInput, decision: PolicyDecision, names: RuleNames): Outcome {
  const { permitted, shadow = { permitted, would_deny: [], would_allow: [] } } = decision;
  const judged = { permitted, violations: violationsOf(input, decision), shadow };
  if (permitted.length > 0) return { outcome: 'permit', ...judged };
  const reason = denialReason(input, decision);
  const { scope, effect, kind, ruleIds } = reason;
  return {
    outcome: 'deny',
    ...judged,
    reason: { scope, ruleType: `${effect}_${kind}`, ruleIds, message: denialMessage(reason, names) },
  };
}

/** An IP violation names no candidate and counts for every one. */
function violationsOf(input: PolicyInput, { violations }: PolicyDecision): Map<string, string[]> {
  const byCandidate = new Map<string, string[]>();
  for (const { id } of input.candidates) {
    const ids = violations.flatMap(({ candidate = id, ruleIds }) => (candidate === id ? ruleIds : []));
    if (ids.length > 0) byCandidate.set(id, [...new Set(ids)].sort());
  }
  return byCandidate;
}
