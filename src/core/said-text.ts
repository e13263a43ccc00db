import type { ChunkDelta, CompletionMessage } from '../generated/types.ts';
import { record } from '../providers/json.ts';
import type { TextToCount } from '../providers/token-estimate.ts';

/** What is kept of one answer for an estimate: 500 streams at once hold 32 MB at most. Of the rest only the size is known. */
const MAX_KEPT_BYTES = 64 * 1024;

/** What an answer says, thoughts and tool calls included, as far as it is kept: bytes, since a million small strings are not small. */
export class SaidText {
  readonly #choices = new Map<number, GrowingText>();
  #room = MAX_KEPT_BYTES;
  #omittedBytes = 0;

  /** A message, or a piece of one; pieces of one choice belong together. */
  add(choice: number, message: CompletionMessage | ChunkDelta): void {
    const { content, reasoning, refusal, tool_calls: calls } = message;
    this.#keep(choice, content);
    this.#keep(choice, reasoning);
    this.#keep(choice, refusal);
    for (const { function: called } of calls ?? []) {
      this.#keep(choice, called?.name);
      this.#keep(choice, called?.arguments);
    }
    // The old form of a call of a function, which passes as it came.
    const { name, arguments: given } = record(record(message).function_call);
    this.#keep(choice, name);
    this.#keep(choice, given);
  }

  /** @param text unknown, for unlike `content` the others pass as the provider sent them */
  #keep(choice: number, text: unknown): void {
    if (typeof text !== 'string' || text === '') return;
    const bytes = Buffer.byteLength(text);
    const kept = this.#room === 0 ? 0 : this.#choice(choice).append(text, Math.min(bytes, this.#room));
    this.#omittedBytes += bytes - kept;
    // What follows a gap is not kept: a choice's text is a beginning, whole.
    this.#room = kept < bytes ? 0 : this.#room - kept;
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
