import { LRUCache } from 'lru-cache';
import { ApiError, permissionDenied, policyUnavailable } from '../domain/errors.ts';
import { newId } from '../domain/id.ts';
import type { KeyRate } from '../domain/limits.ts';
import type { Mapping } from '../domain/model.ts';
import type { PolicyDecision, PolicyFacts, PolicyInput, PolicySubject } from '../generated/types.ts';
import type { Room } from '../net/transport-error.ts';
import {
  assertSubjectRules,
  type DataDocument,
  dataDocument,
  documentPieces,
  PolicyFailure,
} from '../policy/data-document.ts';
import { type DenialReason, denialMessage, denialReason, namedIn } from '../policy/denial.ts';
import { inputText, repeatedInput } from '../policy/input-document.ts';
import type { Pdp } from '../policy/pdp.ts';
import { joinStored } from '../store/db/text-parts.ts';
import type { DecisionRecord } from '../store/ledger/references.ts';
import type { Store } from '../store/store.ts';
import { invalidKey, type UsableKey } from '../store/tenants/key-credential.ts';
import { findNames } from '../store/tenants/tenants.ts';
import type { Telemetry } from '../telemetry/telemetry.ts';

/** The policy's decision about one call, with everything needed to repeat it. */
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
  /** The mappings that may be called; at least one. */
  readonly candidates: readonly Mapping[];

  constructor(decision: Decision, candidates: readonly Mapping[], reassert: Reassert) {
    this.#ids = new Set(decision.result.permitted);
    this.#reassert = reassert;
    this.decision = decision;
    this.candidates = candidates.filter(({ id }) => this.#ids.has(id));
  }

  /** This permission for fewer candidates; may contain none. */
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

/** The parts of the process that a decision uses. */
interface AuthorizeDeps {
  readonly store: Store;
  readonly documents: Documents;
  /** The policy in force. */
  readonly pdp: () => Pdp;
  readonly telemetry: Telemetry;
}

/** Input of a question to the policy. */
export interface PermissionRequest {
  readonly principal: Principal;
  readonly context: CallContext;
  readonly action: PolicyInput['action'];
  readonly candidates: readonly Mapping[];
  /** Asked only where the policy takes facts; of the caller as they are then. */
  readonly findFacts: (principal: Principal) => PolicyFacts;
}

/** A request that the policy refused; the answer is the 403 of policy/reference.md, "How a decision is made". */
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
    // The facts of a mapping may have changed too: then it is another object.
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

/** The part of a result that the store keeps. */
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

/** The authenticated caller: a gateway key with its owner and place. Made by `authenticate` alone. */
export interface Principal {
  readonly keyId: string;
  readonly organizationId: string;
  readonly projectId: string;
  readonly memberId: string;
  /** Subjects whose rules apply, outermost scope first. */
  readonly subjects: readonly PolicySubject[];
  /** Tags of the key. */
  readonly keyTags: readonly string[];
  /** The organization's rule revision when the key was read. */
  readonly ruleRevision: number;
  /** A spend limit applies, the key's own or a budget: only mappings whose cost can be told may serve. */
  readonly capped: boolean;
  /** Rates per minute of the key, its owner, its project and its organization; empty where nothing is limited. */
  readonly rates: readonly KeyRate[];
  /** For how long the project's answers may be given again; undefined: not at all. */
  readonly cacheSeconds: number | undefined;
}

/** The subjects whose rules apply to a key's calls, outermost scope first (policy/reference.md, "Whose rules apply"). */
export const subjectsOf = ({
  organizationId,
  groupIds,
  memberId,
  keyId,
}: Pick<UsableKey, 'organizationId' | 'groupIds' | 'memberId' | 'keyId'>): readonly PolicySubject[] => [
  { scope: 'organization', id: organizationId },
  ...groupIds.map((id): PolicySubject => ({ scope: 'group', id })),
  { scope: 'member', id: memberId },
  { scope: 'key', id: keyId },
];

/** Context that a door (HTTP, MCP) gives the core for one operation, with callbacks for the time before the answer. */
export interface CallContext {
  readonly requestId: string;
  readonly clientRequestId: string | undefined;
  /** When the head of the request was read, by `performance.now()`. */
  readonly arrivedAt: number;
  /** Milliseconds for which its body was waited for. */
  readonly receivingMs: number;
  /** The MCP tool that was called; absent for other doors. */
  readonly tool?: string;
  /** Canonical client address, or null when it cannot be determined. */
  readonly clientIp: string | null;
  /** Aborted when the client leaves: the upstream call is then cancelled. */
  readonly signal: AbortSignal;
  /** One attempt only (`x-no-fallback`). */
  readonly noFallback: boolean;
  /** The answer comes from a provider and is not kept (`x-no-cache`). */
  readonly noCache: boolean;
  /** The caller's values in headers `x-portcullis-meta-<name>`, by name; asked for where the policy takes them. */
  findMeta?(): Readonly<Record<string, string>>;
  /** Room for what the providers answer; it is given back when the caller has it. */
  readonly room: Room;
  /** Called once a decision is made, whatever it is; `policyRevision` is what `x-policy-revision` shows. */
  onDecision(decisionId: string, policyRevision: string): void;
  /** Called when the decision denies, with the kind of the rules that did: `deny_models`. */
  onDenial(reason: string): void;
  /** Called with the id of the call before its row is written. */
  onCall(callId: string): void;
  /** Called before the answer is given, when the provider that gives it has left fields of the request out. */
  onDropped(fields: readonly string[]): void;
  /** Called when the answer comes from the cache, before it is given. */
  onCacheHit(): void;
  /** Called once the call's end is on record. @param target who served it @param cost pico-dollars */
  onEnd(target: Pick<Mapping, 'providerId' | 'modelId'> | undefined, cost: bigint): void;
}

/** A data document, and how the store keeps it. */
export interface KeptDocument extends DataDocument {
  readonly stored: string;
}

/** The data document of a principal's subjects, by the rules as they are now. */
export type Documents = (principal: Principal) => Promise<KeptDocument>;

/** Most documents that are remembered; one for each busy key. */
const MAX_REMEMBERED = 4096;

/** A scope whose rules cannot be had denies, as every failure of the policy does (policy/reference.md, "When the evaluation fails"). */
function rulesUnavailable(cause: unknown): never {
  throw cause instanceof ApiError ? cause : new PolicyFailure('The rules of a subject cannot be read.', cause);
}

/**
 * Reads rules, and remembers the document while no rule of the organization changes. A document read after a change but
 * remembered under the revision before it is only read once more.
 */
export function createDocuments(store: Store): Documents {
  const remembered = new LRUCache<
    string,
    { ruleRevision: number; subjects: Principal['subjects']; document: KeptDocument }
  >({ max: MAX_REMEMBERED });
  /** Texts that were found well formed: most calls share their organization's and member's. */
  const wellFormed = new LRUCache<string, true>({ max: MAX_REMEMBERED });
  const check = (text: string): void => {
    if (wellFormed.get(text) === true) return;
    assertSubjectRules(text);
    wellFormed.set(text, true);
  };

  return async ({ organizationId, keyId, subjects, ruleRevision }) => {
    const known = remembered.get(keyId);
    if (known !== undefined && known.ruleRevision === ruleRevision && areSame(known.subjects, subjects))
      return known.document;
    const ids = subjects.map(({ id }) => id);
    const compiled = [...(await store.subjectRules(organizationId, ids).catch(rulesUnavailable))];
    for (const [, { text }] of compiled) check(text);
    const document = {
      ...dataDocument(compiled.map(([id, { text }]) => ({ id, rules: text }))),
      stored: joinStored(documentPieces(compiled.map(([id, { stored }]) => ({ id, rules: stored })))),
    };
    remembered.set(keyId, { ruleRevision, subjects, document });
    return document;
  };
}

const areSame = (known: Principal['subjects'], subjects: Principal['subjects']): boolean =>
  known.length === subjects.length && known.every(({ id }, at) => id === subjects[at]?.id);

/**
 * The reason for the caller of a denied request: each rule by its id and, if it has one, its description. Only rules and groups
 * of the caller's own organization have a name here.
 */
export const tellDenial = (store: Pick<Store, 'read'>, organizationId: string, reason: DenialReason): Promise<string> =>
  store.read((db) => denialMessage(reason, findNames(db, organizationId, namedIn(reason))));

/** Whatever an operation throws, as the error for its caller. What is not an `ApiError` is a fault of ours: its text stays inside. */
export function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof PolicyFailure) return policyUnavailable(error);
  return new ApiError(500, 'internal_error', 'An internal error occurred.', { cause: error });
}
