import type { ChunkChoice, ChunkDelta } from '../../generated/types.ts';
import { type StreamEvent, streamEvents } from '../../net/event-stream.ts';
import type { StreamedResponse } from '../../net/exchange.ts';
import type { UpstreamChunk } from '../wire/adapter.ts';
import { count, eventJson, isRecord, modelId, record } from '../wire/json.ts';
import { badResponse } from '../wire/upstream-error.ts';
import { finishReason, MAX_BLOCKS, otherFields, refusalText } from './answer.ts';
import { reportedError } from './error.ts';
import { type OpenBlock, openBlock, type Spoken } from './stream-block.ts';
import { anthropicUsage, type ReportedUsage, reportUsage } from './usage.ts';

type Fields = Readonly<Record<string, unknown>>;

/** Blocks come one after the other; a few more are borne. */
const MAX_OPEN_BLOCKS = 16;

/** A streamed answer. Anything but a stop reason and then `message_stop` is a stream that was cut. */
export async function* parseStream(
  response: StreamedResponse,
  secret?: string,
): AsyncGenerator<UpstreamChunk, void, undefined> {
  const reader = new EventReader(secret);
  for await (const events of streamEvents(response)) {
    for (const event of events) {
      yield* reader.read(event);
      if (!reader.stopped) continue;
      response.drain();
      return;
    }
  }
  throw badResponse(reader.begun ? "The provider's stream was cut off." : 'The provider sent an empty stream.');
}

/** Turns the events of one stream into chunks, in order. */
class EventReader {
  readonly #secret: string | undefined;
  begun = false;
  /** The last event was `message_stop`, at its place. */
  stopped = false;
  #finished = false;
  /** The first delta, and no other, carries the role. */
  #said = false;
  #model: string | undefined;
  #usage: ReportedUsage = {};
  #blocks = 0;
  readonly #open = new Map<number, OpenBlock>();
  readonly #spoken: Spoken = { contentLength: 0, calls: 0, citedLength: 0 };

  /** @param secret what the request carried */
  constructor(secret: string | undefined) {
    this.#secret = secret;
  }

  /** @throws UpstreamError `bad_response`, or the error that the event tells */
  read(streamed: StreamEvent): UpstreamChunk[] {
    const event = eventJson(streamed);
    if (!isRecord(event)) throw malformed();
    const type = event.type ?? streamed.event;
    const error = reportedError(type === 'error' ? { ...event, type } : event, this.#secret);
    if (error !== undefined) throw error;
    switch (type) {
      case 'message_start':
        return this.#start(record(event.message));
      case 'content_block_start':
        return this.#openBlock(event);
      case 'content_block_delta':
        return this.#block(event)
          .add(record(event.delta))
          .map((delta) => this.#chunk(delta));
      case 'content_block_stop':
        return this.#closeBlock(event);
      case 'message_delta':
        return this.#finish(event);
      case 'message_stop':
        if (!this.#finished) throw badResponse("The provider's stream was cut off.");
        this.stopped = true;
        return [];
      default:
        return [];
    }
  }

  /** Tells what the prompt took, and no choice yet: as long as nothing is said, another provider can take over. */
  #start({ model, usage }: Fields): UpstreamChunk[] {
    this.begun = true;
    this.#model = modelId(model) ?? this.#model;
    this.#usage = reportUsage(this.#usage, usage);
    return [this.#usageChunk()];
  }

  #openBlock(event: Fields): UpstreamChunk[] {
    const index = count(event.index);
    if (index === undefined || !isRecord(event.content_block)) throw malformed();
    this.#blocks += 1;
    if (this.#blocks > MAX_BLOCKS) throw badResponse('The provider sent too many blocks.');
    const block = openBlock(event.content_block, index, this.#spoken);
    this.#open.set(index, block);
    if (this.#open.size > MAX_OPEN_BLOCKS) throw badResponse('The provider sent too many blocks at once.');
    return block.begin().map((delta) => this.#chunk(delta));
  }

  #closeBlock(event: Fields): UpstreamChunk[] {
    const block = this.#block(event);
    this.#open.delete(count(event.index) ?? -1);
    return block.end().map((delta) => this.#chunk(delta));
  }

  #block({ index }: Fields): OpenBlock {
    const block = this.#open.get(count(index) ?? -1);
    if (block === undefined) throw malformed();
    return block;
  }

  /** The usage of the last such event holds; the first that has a stop reason ends the choice. */
  #finish({ type: _, delta, usage, ...fields }: Fields): UpstreamChunk[] {
    this.#usage = reportUsage(this.#usage, usage);
    const { stop_reason: reason, ...more } = record(delta);
    if (typeof reason !== 'string' || this.#finished) return [this.#usageChunk()];
    this.#finished = true;
    const refusal = refusalText(more.stop_details);
    const choice: ChunkChoice = {
      ...this.#choice(refusal === undefined ? {} : { refusal }),
      finish_reason: finishReason(reason, this.#spoken.calls > 0),
    };
    return [{ ...this.#usageChunk(), choices: [choice], fields: otherFields({ ...fields, ...more }) }];
  }

  #usageChunk(): UpstreamChunk {
    return { model: this.#model, choices: [], usage: anthropicUsage(this.#usage), fields: {} };
  }

  #chunk(delta: ChunkDelta): UpstreamChunk {
    if (this.#finished) throw malformed();
    return { model: this.#model, choices: [this.#choice(delta)], usage: undefined, fields: {} };
  }

  #choice(delta: ChunkDelta): ChunkChoice {
    const first = !this.#said;
    this.#said = true;
    return { index: 0, delta: first ? { role: 'assistant', ...delta } : delta, finish_reason: null };
  }
}

const malformed = () => badResponse('The provider sent a malformed chunk.');
