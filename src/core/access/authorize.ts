import { type ApiError, permissionDenied } from '../../domain/errors.ts';
import { newId } from '../../domain/id.ts';
import type { Mapping } from '../../domain/model.ts';
import type { PolicyDecision, PolicyFacts, PolicyInput } from '../../generated/types.ts';
import { type DenialReason, denialReason } from '../../policy/denial-reason.ts';
import { inputText, repeatedInput } from '../../policy/input-document.ts';
import type { Pdp } from '../../policy/pdp.ts';
import type { DecisionRecord } from '../../store/ledger/decisions.ts';
import type { Store } from '../../store/store.ts';
import { invalidKey } from '../../store/tenants/key-credential.ts';
import type { Telemetry } from '../../telemetry.ts';
import type { CallContext } from './call-context.ts';
import type { Documents, KeptDocument } from './documents.ts';
import { type Principal, subjectsOf } from './principal.ts';
import { tellDenial } from './tell-denial.ts';

/** What the policy said about one call, with all that is needed to say it again. */
export interface Decision {
  readonly id: string;
  readonly bundleDigest: string;
  readonly ruleRevision: number;
  readonly data: KeptDocument;
  readonly input: PolicyInput;
  readonly result: PolicyDecision;
}

/** Asks once more, if the rules, the policy or what is known of the mapping have changed since; throws when the candidate is no longer permitted. */
type Reassert = (decision: Decision, mapping: Mapping, ruleRevision: number | undefined) => Promise<void>;

/**
 * Leave to call some candidates. The class is not exported: a value of it comes from `authorize` and nowhere else, so a call to
 * a provider without a decision does not compile.
 */
class PermittedCandidates {
  readonly #ids: ReadonlySet<string>;
  readonly #reassert: Reassert;
  readonly decision: Decision;
  /** What may be called; at least one. */
  readonly candidates: readonly Mapping[];

  constructor(decision: Decision, candidates: readonly Mapping[], reassert: Reassert) {
    this.#ids = new Set(decision.result.permitted);
    this.#reassert = reassert;
    this.decision = decision;
    this.candidates = candidates.filter(({ id }) => this.#ids.has(id));
  }

  /** The same leave for fewer candidates; may hold none. */
  narrowed(keep: (mapping: Mapping) => boolean): PermittedCandidates {
    return new PermittedCandidates(this.decision, this.candidates.filter(keep), this.#reassert);
  }

  /**
   * Before each attempt: throws unless this candidate is permitted, by the rules as they are now.
   * @param ruleRevision the organization's rule revision where it was read a moment ago; else it is read
   */
  async assertHolds(mapping: Mapping, ruleRevision?: number): Promise<void> {
    if (!this.#ids.has(mapping.id)) throw new Error(`${mapping.id} was never permitted`);
    await this.#reassert(this.decision, mapping, ruleRevision);
  }
}

export type Permitted = PermittedCandidates;

export interface AuthorizeDeps {
  readonly store: Store;
  readonly documents: Documents;
  /** The policy in force. */
  readonly pdp: () => Pdp;
  readonly telemetry: Telemetry;
}

/** What is asked of the policy. */
export interface PermissionRequest {
  readonly principal: Principal;
  readonly context: CallContext;
  readonly action: PolicyInput['action'];
  readonly candidates: readonly Mapping[];
  /** Asked only where the policy takes facts; of the caller as they are then. */
  readonly findFacts: (principal: Principal) => PolicyFacts;
}

/** A request that the policy refused; the answer is the 403 of policy/README.md, "How a decision is made". */
export class Denial extends Error {
  readonly decision: Decision;
  readonly reason: DenialReason;

  /** @param message for the caller */
  constructor(decision: Decision, reason: DenialReason, message: string) {
    super(message);
    this.decision = decision;
    this.reason = reason;
  }

  /** The answer, once the denial is on record. */
  answer(): ApiError {
    return permissionDenied(this.message);
  }
}

/** `x-policy-revision`: by which policy and which rules. */
export const policyRevision = (bundleDigest: string, ruleRevision: number): string =>
  `${bundleDigest.slice(0, 12)}.${ruleRevision}`;

/**
 * The policy enforcement point: gathers the facts, asks the PDP, and lets pass only what it permits. The only maker of `Permitted`.
 * @throws Denial when no candidate is permitted, PolicyFailure when that cannot be told
 */
export async function authorize(deps: AuthorizeDeps, request: PermissionRequest): Promise<Permitted> {
  const { store, pdp, telemetry } = deps;
  const { context, candidates, principal } = request;
  const decision = await decide(deps, request);
  context.onDecision(decision.id, policyRevision(decision.bundleDigest, decision.ruleRevision));
  if (decision.result.permitted.length === 0) {
    const reason = denialReason(decision.input, decision.result);
    const kind = `${reason.effect}_${reason.kind}`;
    context.onDenial(kind);
    telemetry.decided(kind);
    throw new Denial(decision, reason, await tellDenial(store, principal.organizationId, reason));
  }
  telemetry.decided(undefined);
  const reassert: Reassert = async (made, mapping, known) => {
    const ruleRevision = known ?? (await store.ruleRevision(principal.organizationId));
    // What is known of a mapping may have changed too: then it is another object.
    const isSame = candidates.includes(mapping) && ruleRevision === made.ruleRevision;
    if (isSame && pdp().bundleDigest === made.bundleDigest) return;
    const now = { ...principal, ...(await callerNow(store, principal)), ruleRevision };
    const again = await decide(deps, { ...request, principal: now, candidates: [mapping] });
    if (again.result.permitted.length > 0) return;
    const reason = denialReason(again.input, again.result);
    throw permissionDenied(await tellDenial(store, principal.organizationId, reason));
  };
  return new PermittedCandidates(decision, candidates, reassert);
}

/** A change of groups or of the key's tags raises the rule revision too. @throws ApiError 401 when the key or its owner is gone */
async function callerNow(
  store: Pick<Store, 'findKeyById'>,
  { keyId }: Principal,
): Promise<Pick<Principal, 'subjects' | 'keyTags'>> {
  const key = await store.findKeyById(keyId);
  if (key?.memberId === undefined) throw invalidKey();
  return { subjects: subjectsOf({ ...key, memberId: key.memberId }), keyTags: key.tags };
}

async function decide(
  { documents, pdp, telemetry }: AuthorizeDeps,
  { principal, context, action, candidates, findFacts }: PermissionRequest,
): Promise<Decision> {
  const data = await documents(principal);
  const engine = pdp();
  const facts = engine.takesFacts ? findFacts(principal) : undefined;
  const input = repeatedInput(data, action, context.clientIp, principal.subjects, candidates, context.tool, facts);
  const startedAt = performance.now();
  const result = engine.decide(input, data);
  telemetry.policyEvaluated(performance.now() - startedAt);
  return {
    id: newId('dec'),
    bundleDigest: engine.bundleDigest,
    ruleRevision: principal.ruleRevision,
    data,
    input,
    result,
  };
}

/** What the store keeps of a result. */
export const recordedResult = (
  result: PolicyDecision,
  reason: DenialReason | undefined,
): Pick<DecisionRecord, 'outcome' | 'reasonJson' | 'violationsJson' | 'shadowJson'> => ({
  outcome: reason === undefined ? 'permit' : 'deny',
  reasonJson: reason === undefined ? null : JSON.stringify(reason),
  violationsJson: JSON.stringify(result.violations),
  shadowJson: result.shadow === undefined ? null : JSON.stringify(result.shadow),
});

/** The decision as the store keeps it. */
export const decisionRecord = (decision: Decision, reason?: DenialReason): DecisionRecord => ({
  ...recordedResult(decision.result, reason),
  bundleDigest: decision.bundleDigest,
  dataDigest: decision.data.digest,
  dataText: decision.data.stored,
  ruleRevision: decision.ruleRevision,
  inputJson: inputText(decision.input),
});
