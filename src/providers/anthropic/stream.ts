import type { ChunkChoice, ChunkDelta } from '../../generated/types.ts';
import { type StreamEvent, streamEvents } from '../../net/event-stream.ts';
import type { StreamedResponse } from '../../net/exchange.ts';
import type { UpstreamChunk } from '../wire/adapter.ts';
import { count, eventJson, type Fields, isRecord, modelId, record } from '../wire/fields.ts';
import { badResponse } from '../wire/upstream-error.ts';
import {
  annotations,
  anthropicUsage,
  finishReason,
  MAX_BLOCKS,
  otherFields,
  type ReportedUsage,
  refusalText,
  reportUsage,
  type Source,
  sourceOf,
} from './answer.ts';
import { reportedError } from './error.ts';
import { encryptedDetail, textDetail } from './messages.ts';
import { ANSWER_TOOL } from './tools.ts';

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

/** A block of a stream that has begun and not ended. */
interface OpenBlock {
  /** Deltas for its beginning. */
  begin(): ChunkDelta[];
  /** Deltas for a piece of it; none for a piece of an unknown type. */
  add(delta: Fields): ChunkDelta[];
  /** Remaining deltas at its end. */
  end(): ChunkDelta[];
}

/** State that the blocks of one stream share. */
interface Spoken {
  /** Length of the content so far. */
  contentLength: number;
  /** Tool calls begun; the next one's index, which is not its block's. */
  calls: number;
  /** Length of the sources so far, which wait for the ends of their blocks. */
  citedLength: number;
}

/** Characters of the sources that one stream may name. */
const MAX_CITED_LENGTH = 512 * 1024;
const CITATION_OVERHEAD = 128;

const text = (value: unknown): string => (typeof value === 'string' ? value : '');

/** @param index the block's, which its thoughts keep. @throws UpstreamError `bad_response` */
function openBlock(block: Fields, index: number, spoken: Spoken): OpenBlock {
  switch (block.type) {
    case 'text':
      return textBlock(block, spoken);
    case 'thinking':
      return thinkingBlock(block, index);
    case 'redacted_thinking':
      return redactedBlock(text(block.data), index);
    case 'tool_use':
      return block.name === ANSWER_TOOL ? answerBlock(block, spoken) : toolBlock(block, spoken);
    default:
      return SILENT;
  }
}

/** The provider's own tools and their results. */
const SILENT: OpenBlock = { begin: () => [], add: () => [], end: () => [] };

const contentDelta = (content: string, spoken: Spoken): ChunkDelta[] => {
  spoken.contentLength += content.length;
  return content === '' ? [] : [{ content }];
};

function textBlock(block: Fields, spoken: Spoken): OpenBlock {
  const start = spoken.contentLength;
  const first = text(block.text);
  const sources: Source[] = [];
  const cite = (citation: unknown): void => {
    const source = sourceOf(citation);
    if (source === undefined || spoken.citedLength > MAX_CITED_LENGTH) return;
    spoken.citedLength += CITATION_OVERHEAD + source.url.length + source.title.length;
    if (spoken.citedLength <= MAX_CITED_LENGTH) sources.push(source);
  };
  if (Array.isArray(block.citations)) block.citations.forEach(cite);
  return {
    begin: () => contentDelta(first, spoken),
    add(delta) {
      if (delta.type === 'text_delta') return contentDelta(text(delta.text), spoken);
      if (delta.type === 'citations_delta') cite(delta.citation);
      return [];
    },
    end: () => (sources.length === 0 ? [] : [{ annotations: annotations(sources, start, spoken.contentLength) }]),
  };
}

const redactedBlock = (data: string, index: number): OpenBlock => ({
  ...SILENT,
  begin: () => [{ reasoning_details: [encryptedDetail(index, data)] }],
});

function thinkingBlock(block: Fields, index: number): OpenBlock {
  const thought = (piece: string): ChunkDelta[] =>
    piece === '' ? [] : [{ reasoning: piece, reasoning_details: [textDetail(index, { text: piece })] }];
  const signed = (signature: string): ChunkDelta[] =>
    signature === '' ? [] : [{ reasoning_details: [textDetail(index, { signature })] }];
  const begun = [...thought(text(block.thinking)), ...signed(text(block.signature))];
  return {
    begin: () => begun,
    add(delta) {
      if (delta.type === 'thinking_delta') return thought(text(delta.thinking));
      return delta.type === 'signature_delta' ? signed(text(delta.signature)) : [];
    },
    end: () => [],
  };
}

/** The pieces of a call's input; some providers send it whole at the beginning, and an empty one may come in no piece at all. */
function inputOf({ input }: Fields, say: (piece: string) => ChunkDelta[]): Pick<OpenBlock, 'add' | 'end'> {
  // As text, which takes a fraction of the memory of what it says until the block ends.
  const whole = JSON.stringify(isRecord(input) ? input : {});
  let said = false;
  return {
    add(delta) {
      const piece = delta.type === 'input_json_delta' ? text(delta.partial_json) : '';
      if (piece === '') return [];
      said = true;
      return say(piece);
    },
    end: () => (said ? [] : say(whole)),
  };
}

function toolBlock(block: Fields, spoken: Spoken): OpenBlock {
  const { id, name } = block;
  if (typeof id !== 'string' || typeof name !== 'string') throw badResponse('The provider sent a malformed chunk.');
  const index = spoken.calls;
  spoken.calls += 1;
  return {
    begin: () => [{ tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] }],
    ...inputOf(block, (piece) => [{ tool_calls: [{ index, function: { arguments: piece } }] }]),
  };
}

const answerBlock = (block: Fields, spoken: Spoken): OpenBlock => ({
  begin: () => [],
  ...inputOf(block, (piece) => contentDelta(piece, spoken)),
});
