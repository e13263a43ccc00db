import { EventReader, type StreamEvent } from '../../net/event-stream.ts';
import type { StreamedResponse } from '../../net/exchange.ts';
import type { UpstreamChunk } from '../wire/adapter.ts';
import { eventJson, isRecord, modelId } from '../wire/fields.ts';
import { badResponse } from '../wire/upstream-error.ts';
import {
  boundChoices,
  type ChoiceState,
  disguisedError,
  isError,
  MAX_CHOICES,
  normaliseChunkChoice,
  otherFields,
  reportedUsage,
} from './answer.ts';

const END: IteratorResult<UpstreamChunk, undefined> = { done: true, value: undefined };

/**
 * The chunks of a streamed answer, for one reader. Written out because a generator would cost as much for each chunk as all
 * that is done to it but the parsing.
 */
export class OpenAiStream implements AsyncIterableIterator<UpstreamChunk, undefined> {
  readonly #response: StreamedResponse;
  readonly #secret: string | undefined;
  readonly #pieces: AsyncIterator<Buffer>;
  readonly #reader: EventReader;
  readonly #states: ChoiceState[] = [];
  /** Arrived and not yet read, from `#next` on. */
  #events: readonly StreamEvent[] = [];
  #next = 0;
  #left = false;

  /** @param secret what the request carried */
  constructor(response: StreamedResponse, secret?: string) {
    this.#response = response;
    this.#secret = secret;
    this.#pieces = response.chunks[Symbol.asyncIterator]();
    this.#reader = new EventReader(response);
  }

  /** @throws UpstreamError, TransportError; the exchange is cancelled then */
  async next(): Promise<IteratorResult<UpstreamChunk, undefined>> {
    if (this.#left) return END;
    try {
      for (;;) {
        const event = this.#events[this.#next];
        if (event === undefined) {
          const { done, value } = await this.#pieces.next();
          if (done === true) break;
          const read = this.#reader.read(value);
          this.#events = read instanceof Promise ? await read : read;
          this.#next = 0;
        } else if (event.data === '[DONE]') {
          this.#response.drain();
          break;
        } else {
          this.#next += 1;
          return { done: false, value: parseChunk(event, this.#states, this.#secret) };
        }
      }
      requireFinished(this.#states);
    } catch (error) {
      await this.return();
      throw error;
    }
    return this.return();
  }

  async return(): Promise<IteratorResult<UpstreamChunk, undefined>> {
    if (!this.#left) {
      this.#left = true;
      this.#events = [];
      await this.#pieces.return?.();
    }
    return END;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }
}

function parseChunk(event: StreamEvent, states: ChoiceState[], secret: string | undefined): UpstreamChunk {
  const chunk = eventJson(event);
  if (!isRecord(chunk)) throw badResponse('The provider sent a malformed chunk.');
  if (event.event === 'error' || isError(chunk)) throw disguisedError(chunk, secret);
  const usage = reportedUsage(chunk); // before the choices, which lose theirs
  const { model, choices } = chunk;
  const list: unknown = choices ?? [];
  if (!Array.isArray(list)) throw badResponse('The provider sent a malformed chunk.');
  boundChoices(list);
  const normal = list.map((choice: unknown, position) => normaliseChunkChoice(choice, position, states, secret));
  if (states.length > MAX_CHOICES) throw badResponse('The provider sent too many choices.');
  return {
    model: modelId(model),
    choices: normal,
    usage,
    fields: otherFields(chunk),
  };
}

/** A stream without an end of every choice it began was cut, whatever its last line says. */
function requireFinished(states: readonly ChoiceState[]): void {
  if (states.length === 0) throw badResponse('The provider sent an empty stream.');
  for (const state of states) if (!state.finished) throw badResponse("The provider's stream was cut off.");
}
