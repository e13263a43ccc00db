import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Mapping } from '../../domain/model.ts';
import type { Alias } from '../../domain/provider.ts';
import type { Clock } from '../../domain/time.ts';
import type { Usage } from '../../domain/usage.ts';
import type { ChatRequest } from '../../generated/types.ts';
import type { UpstreamChunk } from '../../providers/wire/adapter.ts';
import type { Principal } from '../access/principal.ts';
import type { ProviderJson } from '../call/written-answer.ts';

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
  /** Who gave it, and the upstream's own name of it. */
  readonly mapping: Mapping;
  readonly upstreamModel: string | undefined;
  readonly usage: Usage;
  /** Fields of the request that it left out. */
  readonly dropped: readonly string[];
  readonly kept: KeptWhole | KeptStream;
}

/** By which a mapping's answer to one request of one project is found. */
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

/** What an answer takes besides its text. */
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

  /** What they take, by estimate. */
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
