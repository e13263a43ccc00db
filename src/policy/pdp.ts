import type { PolicyDecision, PolicyInput, PolicyViolation } from '../generated/types.ts';
import { deepFreeze, getOrMake } from '../lib/collections.ts';
import { validator } from '../lib/schemas.ts';
import type { RefusalCode } from './archive/read-archive.ts';
import { bundleDigest, type PolicyBundle, readBundle } from './bundle.ts';
import { type DataDocument, PolicyFailure } from './data-document.ts';
import { createWasmEngine, type EngineOptions, type PolicyAnswer } from './engine.ts';

const validatePolicyDecision = validator('PolicyDecision');

/** The policy decision point: one compiled policy. Pure: equal arguments give equal answers. */
export interface Pdp {
  /** SHA-256 of the compiled policy, hex. */
  readonly bundleDigest: string;
  /** Its input has to state the facts of the request. */
  readonly takesFacts: boolean;
  /** Judges every candidate; the decision is frozen, and every list of it sorted. @throws PolicyFailure, never a pass. */
  decide(input: PolicyInput, data: DataDocument): PolicyDecision;
  /** The permitted candidates' ids alone, frozen and sorted: for lists, in batches of at most 64. @throws PolicyFailure. */
  permitted(input: PolicyInput, data: DataDocument): readonly string[];
  close(): void;
}

/** @throws PolicyFailure when the compiled policy cannot be used, or is not the one that the digest names: only that one was tried */
export function createPdp(bundle: PolicyBundle = readBundle(), options?: Pick<EngineOptions, 'maxInstances'>): Pdp {
  if (bundleDigest(bundle) !== bundle.digest)
    throw new PolicyFailure('The policy is not the one that its digest names.');
  const engine = createWasmEngine(bundle.wasm, { ...options, ownData: bundle.data });
  /** Decisions made of answers; the engine gives the same answer only to the same question. */
  const decisions = new WeakMap<PolicyAnswer, PolicyDecision>();
  const lists = new WeakMap<PolicyAnswer, readonly string[]>();
  return {
    bundleDigest: bundle.digest,
    takesFacts: bundle.takesFacts === true,
    decide(input, data) {
      const answer = engine.evaluate('gateway/authz/decision', input, data);
      return getOrMake(decisions, answer, () => deepFreeze(checkedDecision(input, answer.result)));
    },
    permitted(input, data) {
      const answer = engine.evaluate('gateway/authz/permitted', input, data);
      return getOrMake(lists, answer, () => Object.freeze(checkedList(input, answer.result)));
    },
    close: () => engine.close(),
  };
}

function checkedDecision(input: PolicyInput, result: unknown): PolicyDecision {
  if (!validatePolicyDecision(result)) {
    throw new PolicyFailure('The decision is not well-formed.', validatePolicyDecision.errors?.[0]);
  }
  requireComplete(input, result);
  return sorted(result);
}

function checkedList(input: PolicyInput, result: unknown): readonly string[] {
  if (!isStringList(result)) throw new PolicyFailure('The permitted list is not well-formed.');
  requireKnown(result, candidateIds(input));
  return result.toSorted();
}

/** A candidate must be permitted or violated, and not both: anything else is an evaluation that did not happen. */
function requireComplete(input: PolicyInput, { permitted, violations, shadow }: PolicyDecision): void {
  const ids = candidateIds(input);
  requireKnown(permitted, ids);
  if (shadow !== undefined) requireKnown(shadow.permitted, ids);
  const violated = new Set<string>();
  for (const { candidate } of violations)
    for (const id of candidate === undefined ? ids : [candidate]) violated.add(id);
  for (const id of permitted) if (violated.has(id)) throw new PolicyFailure(`"${id}" is both permitted and violated.`);
  if (violated.size + permitted.length !== ids.size || !ids.isSupersetOf(violated)) {
    throw new PolicyFailure('Some candidate is neither permitted nor violated.');
  }
}

function requireKnown(permitted: readonly string[], ids: ReadonlySet<string>): void {
  if (new Set(permitted).size !== permitted.length) throw new PolicyFailure('A candidate is permitted twice.');
  for (const id of permitted) if (!ids.has(id)) throw new PolicyFailure(`"${id}" is permitted and was no candidate.`);
}

function candidateIds(input: PolicyInput): Set<string> {
  const ids = new Set<string>();
  for (const { id } of input.candidates) ids.add(id);
  if (ids.size === 0) throw new PolicyFailure('There is no candidate to judge.');
  if (ids.size !== input.candidates.length) throw new PolicyFailure('Candidate ids must be unique.');
  return ids;
}

const isStringList = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((item) => typeof item === 'string');

/** Lists of the evaluator are sets in the order of its hash; sorted they can be hashed and compared. */
function sorted({ permitted, violations, shadow }: PolicyDecision): PolicyDecision {
  const decision = { permitted: permitted.toSorted(), violations: sortedViolations(violations) };
  if (shadow === undefined) return decision;
  const { permitted: passing, would_deny, would_allow } = shadow;
  return {
    ...decision,
    shadow: { permitted: passing.toSorted(), would_deny: would_deny.toSorted(), would_allow: would_allow.toSorted() },
  };
}

function sortedViolations(violations: PolicyViolation[]): PolicyViolation[] {
  if (violations.length < 2) return violations;
  const keyed = violations.map((violation) => ({ violation, key: violationKey(violation) }));
  return keyed.sort((a, b) => (a.key < b.key ? -1 : 1)).map(({ violation }) => violation);
}

const violationKey = ({ scope, group, kind, effect, candidate, ruleIds, values }: PolicyViolation): string =>
  JSON.stringify([scope, ...(group === undefined ? [] : [group]), kind, effect, candidate ?? null, ruleIds, values]);

/** Status of the policy in force. Times are epoch ms. */
export interface PolicyStatus {
  /** The bundle digest. */
  readonly digest: string;
  readonly revision: string | undefined;
  /** A path or a URL; undefined: it is the policy of this installation. */
  readonly source: string | undefined;
  readonly activatedAt: number;
  /** When the source was last heard of; undefined: there is none, or it was not. */
  readonly checkedAt: number | undefined;
  /** Why what the source has is not in force; undefined: it is. */
  readonly refusal: { readonly code: RefusalCode; readonly message: string; readonly at: number } | undefined;
}

/** A bundle that has passed its trial, and what is known of it. */
export interface PolicyInForce {
  readonly bundle: PolicyBundle;
  readonly status: PolicyStatus;
}

/** The policy in force. What holds the PDP of one call keeps it to the end; the next call gets the new one. */
interface ActivePolicy {
  pdp(): Pdp;
  status(): PolicyStatus;
  /** Puts another bundle in force, or only what is known of the same one. @throws PolicyFailure, and then nothing changes */
  activate(next: PolicyInForce): void;
}

/** @throws PolicyFailure */
export function createActivePolicy({ bundle, status }: PolicyInForce): ActivePolicy {
  let pdp = createPdp(bundle);
  let known = status;
  return {
    pdp: () => pdp,
    status: () => known,
    activate(next) {
      if (next.bundle.digest !== pdp.bundleDigest) pdp = createPdp(next.bundle);
      known = next.status;
    },
  };
}
