import type { ChunkDelta, CompletionMessage } from '../../generated/types.ts';
import { entryOf } from '../../lib/text.ts';
import type { TextToCount } from '../../providers/tokens/token-estimate.ts';
import { record } from '../../providers/wire/json.ts';

/** What is kept of one answer for an estimate: 500 streams at once hold 32 MB at most. Of the rest only the size is known. */
const MAX_KEPT_BYTES = 64 * 1024;

/** Of an answer's fields these alone are no output: marks of ours and of the provider, and pictures, which are counted apart. */
const NO_OUTPUT: ReadonlySet<string> = new Set([
  'expires_at',
  'format',
  'id',
  'images',
  'index',
  'object',
  'role',
  'signature',
  'type',
]);

/** Base64 of sound that a provider counts as one token: 50 ms, between what compressed and plain sound take. */
const BASE64_PER_AUDIO_TOKEN = 800;

/** Thoughts come under several names at once: each text is counted once. */
const isThought = (name: string): boolean => name.startsWith('reasoning') || name.startsWith('thinking');

/** What is kept of an answer's text, from any field: bytes, since a million small strings are not small. */
export class SaidText {
  readonly #choices = new Map<number, GrowingText>();
  #room = MAX_KEPT_BYTES;
  #omittedBytes = 0;
  #base64 = 0;

  /** A message, or a piece of one; pieces of one choice belong together. */
  add(choice: number, message: CompletionMessage | ChunkDelta): void {
    const fields = record(message);
    let thoughts: Set<string> | undefined;
    for (const name in fields) {
      const value = entryOf(fields, name);
      if (value === null || value === '' || NO_OUTPUT.has(name)) continue;
      if (isThought(name)) {
        thoughts ??= new Set();
        this.#walk(choice, value, thoughts);
      } else if (name === 'audio') this.#addSound(choice, value);
      else this.#walk(choice, value, undefined);
    }
  }

  /** @param counted texts that are not to be counted again */
  #walk(choice: number, value: unknown, counted: Set<string> | undefined): void {
    if (typeof value === 'string') {
      if (counted?.has(value) !== true) this.#keep(choice, value);
      counted?.add(value);
    } else if (Array.isArray(value)) {
      for (const item of value) this.#walk(choice, item, counted);
    } else if (typeof value === 'object') {
      const fields = record(value);
      for (const name in fields) if (!NO_OUTPUT.has(name)) this.#walk(choice, entryOf(fields, name), counted);
    }
  }

  /** Speech: its transcript is text, its sound is not. */
  #addSound(choice: number, value: unknown): void {
    const { data, ...rest } = record(value);
    if (typeof data === 'string') this.#base64 += data.length;
    this.#walk(choice, rest, undefined);
  }

  #keep(choice: number, text: string): void {
    if (text === '') return;
    const bytes = Buffer.byteLength(text);
    const kept = this.#room === 0 ? 0 : this.#choice(choice).append(text, Math.min(bytes, this.#room));
    this.#omittedBytes += bytes - kept;
    // What follows a gap is not kept: a choice's text is a beginning, whole.
    this.#room = kept < bytes ? 0 : this.#room - kept;
  }

  /** Tokens of the sound so far, by its length. */
  get audioTokens(): number {
    return Math.ceil(this.#base64 / BASE64_PER_AUDIO_TOKEN);
  }

  #choice(index: number): GrowingText {
    let text = this.#choices.get(index);
    if (text === undefined) {
      text = new GrowingText();
      this.#choices.set(index, text);
    }
    return text;
  }

  clear(): void {
    this.#choices.clear();
    this.#room = MAX_KEPT_BYTES;
    this.#omittedBytes = 0;
    this.#base64 = 0;
  }

  toCount(): TextToCount {
    return { texts: [...this.#choices.values()].map(String), omittedBytes: this.#omittedBytes };
  }
}

const MIN_CAPACITY = 256;

class GrowingText {
  #bytes = Buffer.alloc(0);
  #length = 0;

  /** Appends what fits of a text into so many bytes, in whole characters; returns how many bytes that took. */
  append(text: string, maxBytes: number): number {
    const needed = this.#length + maxBytes;
    if (needed > this.#bytes.length) {
      const grown = Buffer.allocUnsafeSlow(Math.max(MIN_CAPACITY, 2 * this.#bytes.length, needed));
      this.#bytes.copy(grown, 0, 0, this.#length);
      this.#bytes = grown;
    }
    const written = this.#bytes.write(text, this.#length, maxBytes);
    this.#length += written;
    return written;
  }

  toString(): string {
    return this.#bytes.toString('utf8', 0, this.#length);
  }
}
