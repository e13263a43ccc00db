import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Mapping } from '../domain/model.ts';
import type { Alias } from '../domain/provider.ts';
import type { Clock } from '../domain/time.ts';
import type { Usage } from '../domain/usage.ts';
import type { CallMetadata, ChatChunk, ChatCompletion, ChatRequest, ChatUsage } from '../generated/types.ts';
import type { OutboundRequest } from '../net/transport.ts';
import type { UpstreamChunk } from '../providers/wire/adapter.ts';
import type { Principal } from './authorize.ts';
import type { Call } from './call.ts';
import { nameThoughts, Produced, type ProviderJson, WrittenAnswer } from './provider-answer.ts';
import type { Target } from './reach.ts';
import { endpointOf } from './target-exchange.ts';

/** Facts shared by all parts of one answer. */
export interface AnswerFacts {
  readonly call: Pick<Call, 'id' | 'facts'>;
  /** Seconds since 1970: one `created` for the whole answer. */
  readonly created: number;
}

/** An answer that a provider is to give. */
export interface DispatchedAnswer extends AnswerFacts {
  readonly call: Call;
  /** Keeps the answer for the next caller; absent where nothing is kept. */
  readonly keep?: (answer: CachedAnswer) => void;
}

/** Its choices are the provider's. */
export type WrittenCompletion = WrittenAnswer<Omit<ChatCompletion, 'choices'>>;

/** A whole answer, or a stream of chunks; nothing of a stream is asked of the upstream before its first chunk is asked for. */
export type ChatOutcome =
  | { readonly kind: 'completion'; readonly completion: WrittenCompletion }
  | { readonly kind: 'stream'; readonly chunks: AsyncIterable<ChatChunk | WrittenAnswer<ChatChunk>> };

const answerId = (callId: string): string => `chatcmpl-${callId.slice('call_'.length)}`;

/** A whole answer. @param upstream its choices, and fields that nobody here knows */
export function chatCompletion(
  answer: AnswerFacts,
  upstream: ProviderJson,
  modelId: string,
  usage: ChatUsage,
  metadata: CallMetadata,
): WrittenCompletion {
  const ours = {
    id: answerId(answer.call.id),
    object: 'chat.completion' as const,
    created: answer.created,
    model: modelId,
    usage,
    metadata,
  };
  return new WrittenAnswer(ours, upstream);
}

/** One chunk of a streamed answer. Thoughts get both of their names, in place. */
export function chatChunk(
  answer: AnswerFacts,
  upstream: Pick<UpstreamChunk, 'choices' | 'fields'>,
  modelId: string,
  end: Pick<ChatChunk, 'usage' | 'metadata'> = {},
): ChatChunk {
  for (const { delta } of upstream.choices) nameThoughts(delta);
  return {
    ...upstream.fields,
    id: answerId(answer.call.id),
    object: 'chat.completion.chunk',
    created: answer.created,
    model: modelId,
    choices: [...upstream.choices],
    ...end,
  };
}

/** A chat request as a target is sent it, held to what the key's limit pays for. */
export function outboundChat(call: Call, request: ChatRequest, target: Target): OutboundRequest {
  const { mapping, provider } = target;
  const limit = call.outputLimit(mapping);
  const maxOutputTokens = limit === undefined ? {} : { maxOutputTokens: limit.tokens };
  const chatCall = { request, mapping, namedFields: provider.namedFields, ...maxOutputTokens };
  return provider.adapter.buildRequest(chatCall, endpointOf(target));
}

/** Fields of a chat request that a target leaves out. */
export const droppedIn =
  (request: ChatRequest) =>
  ({ mapping, provider: { adapter, namedFields } }: Target): readonly string[] =>
    adapter.dropped({ request, mapping, namedFields });

/** A target's output for a request, for its bill. */
export function producedBy(call: Call, { mapping, provider }: Target, request: ChatRequest): Produced {
  const limit = call.outputLimit(mapping);
  return new Produced({
    mostOutputTokens: limit && limit.tokens * (request.n ?? 1),
    unreportedSearches: provider.adapter.unreportedSearches?.(request) ?? 0,
  });
}

/** A stream as it is kept, and about how long its text is. */
export interface KeptStream {
  readonly kind: 'stream';
  readonly characters: number;
  readonly chunks: () => Iterable<Pick<UpstreamChunk, 'choices' | 'fields'>>;
}

/** A whole answer, as JSON: one text is moved and looked through by the garbage collector at a fraction of the price of its objects. */
interface KeptWhole {
  readonly kind: 'whole';
  readonly json: ProviderJson;
}

/** An answer to be given again. */
export interface CachedAnswer {
  /** The mapping that gave it, and the upstream's own name of the model. */
  readonly mapping: Mapping;
  readonly upstreamModel: string | undefined;
  readonly usage: Usage;
  /** Fields of the request that it left out. */
  readonly dropped: readonly string[];
  readonly kept: KeptWhole | KeptStream;
}

/** The cache key of a mapping's answer to one request of one project. */
export type CacheKey = (mapping: Mapping) => string;

/**
 * The key's parts: project, whole body as received, mapping, stream or not, and the models of an alias, whose answers end when it changes
 * (src/core/README.md, "cache").
 */
export function cacheKey({ projectId }: Principal, request: ChatRequest, alias?: Pick<Alias, 'models'>): CacheKey {
  const text = JSON.stringify(request);
  const digest = hash('sha256', alias === undefined ? text : `${text} ${alias.models.join(' ')}`, 'base64url');
  const kind = request.stream === true ? 'stream' : 'whole';
  return ({ id, revision = '' }) => `${projectId} ${kind} ${digest} ${id} ${revision}`;
}

/** Bytes of an entry besides its text. */
const ENTRY_OVERHEAD_BYTES = 1024;
/** One answer may take this part of the cache. */
const LARGEST_PART = 8;

/** Answers in memory, never at rest; when the bytes are used up, the one not asked for longest goes. */
export class ResponseCache {
  readonly #answers: LRUCache<string, CachedAnswer>;

  constructor(clock: Clock, maxBytes: number) {
    const maxEntrySize = Math.floor(maxBytes / LARGEST_PART);
    this.#answers = new LRUCache({ maxSize: maxBytes, maxEntrySize, perf: clock, ttlResolution: 0 });
  }

  get entries(): number {
    return this.#answers.size;
  }

  /** Estimated bytes of all entries. */
  get bytes(): number {
    return this.#answers.calculatedSize;
  }

  get(key: string): CachedAnswer | undefined {
    return this.#answers.get(key);
  }

  /** @param durationSeconds for how long it may be given again */
  set(key: string, answer: CachedAnswer, durationSeconds: number): void {
    // Two bytes a character at most, and a hash of the body in the key.
    const characters = answer.kept.kind === 'whole' ? answer.kept.json.length : answer.kept.characters;
    const size = 2 * (characters + key.length) + ENTRY_OVERHEAD_BYTES;
    // `LRUCache` still gives an entry in the millisecond in which its time is over.
    this.#answers.set(key, answer, { size, ttl: durationSeconds * 1000 - 1 });
  }
}
