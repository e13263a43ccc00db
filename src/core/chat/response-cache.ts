import { hash } from 'node:crypto';
import type { Mapping } from '../../domain/model.ts';
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

/** The key's parts: project, whole body as received, mapping, stream or not (src/core/README.md, "cache"). */
export function cacheKey({ projectId }: Principal, request: ChatRequest): CacheKey {
  const digest = hash('sha256', JSON.stringify(request), 'base64url');
  const kind = request.stream === true ? 'stream' : 'whole';
  return ({ id, revision = '' }) => `${projectId} ${kind} ${digest} ${id} ${revision}`;
}

/** What an answer takes besides its text. */
const ENTRY_OVERHEAD_BYTES = 1024;
/** One answer may take this part of the cache. */
const LARGEST_PART = 8;
/** This part is made free at once: a `Map` finds its oldest entry by walking over the places of those that went before. */
const FREED_PART = 64;

interface Entry {
  readonly answer: CachedAnswer;
  /** Epoch milliseconds. */
  readonly expiresAt: number;
  readonly bytes: number;
}

/** Answers in memory, never at rest; when the bytes are used up, the one not asked for longest goes. */
export class ResponseCache {
  readonly #clock: Clock;
  readonly #maxBytes: number;
  readonly #entries = new Map<string, Entry>();
  #bytes = 0;

  constructor(clock: Clock, maxBytes: number) {
    this.#clock = clock;
    this.#maxBytes = maxBytes;
  }

  get entries(): number {
    return this.#entries.size;
  }

  /** What they take, by estimate. */
  get bytes(): number {
    return this.#bytes;
  }

  get(key: string): CachedAnswer | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    this.#entries.delete(key);
    if (entry.expiresAt <= this.#clock.now()) {
      this.#bytes -= entry.bytes;
      return undefined;
    }
    this.#entries.set(key, entry);
    return entry.answer;
  }

  /** @param durationSeconds for how long it may be given again */
  set(key: string, answer: CachedAnswer, durationSeconds: number): void {
    // Two bytes a character at most, and a hash of the body in the key.
    const characters = answer.kept.kind === 'whole' ? answer.kept.json.length : answer.kept.characters;
    const bytes = 2 * (characters + key.length) + ENTRY_OVERHEAD_BYTES;
    if (bytes * LARGEST_PART > this.#maxBytes) return;
    this.#remove(key);
    if (this.#bytes + bytes > this.#maxBytes) {
      this.#shrinkTo(this.#maxBytes - Math.max(bytes, this.#maxBytes / FREED_PART));
    }
    this.#entries.set(key, { answer, expiresAt: this.#clock.now() + durationSeconds * 1000, bytes });
    this.#bytes += bytes;
  }

  #shrinkTo(bytes: number): void {
    for (const [oldest] of this.#entries) {
      if (this.#bytes <= bytes) break;
      this.#remove(oldest);
    }
  }

  #remove(key: string): void {
    this.#bytes -= this.#entries.get(key)?.bytes ?? 0;
    this.#entries.delete(key);
  }
}
