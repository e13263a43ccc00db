import type { Mapping } from '../../domain/model.ts';
import type { Room } from '../../net/answer-bounds.ts';

/** What a door (HTTP, MCP) tells the core about one operation, and what the core tells it before the answer is there. */
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
  /** What the caller says of the request in headers `x-portcullis-meta-<name>`, by name; asked for where the policy takes it. */
  findMeta?(): Readonly<Record<string, string>>;
  /** Room for what the providers answer; it is given back when the caller has it. */
  readonly room: Room;
  /** Called once a decision is made, whatever it is; `policyRevision` is what `x-policy-revision` shows. */
  onDecision(decisionId: string, policyRevision: string): void;
  /** Called when the decision denies, with the kind of the rules that did: `deny_models`. */
  onDenial(reason: string): void;
  /** Called once the call has its row. */
  onCall(callId: string): void;
  /** Called before the answer is given, when the provider that gives it has left fields of the request out. */
  onDropped(fields: readonly string[]): void;
  /** Called when the answer comes from the cache, before it is given. */
  onCacheHit(): void;
  /** Called once the call's end is on record. @param target who served it @param cost pico-dollars */
  onEnd(target: Pick<Mapping, 'providerId' | 'modelId'> | undefined, cost: bigint): void;
}
