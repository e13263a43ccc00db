import { ApiError } from '../domain/errors.ts';
import type { ChatChunk, ChatRequest, ChunkChoice } from '../generated/types.ts';
import { entryOf } from '../lib/text.ts';
import type { LongTexts } from '../net/event-stream.ts';
import type { Transport } from '../net/transport.ts';
import { TransportError } from '../net/transport-error.ts';
import type { UpstreamChunk } from '../providers/wire/adapter.ts';
import { record } from '../providers/wire/fields.ts';
import { UpstreamError, unreadable } from '../providers/wire/upstream-error.ts';
import { type Call, callMetadata } from './call.ts';
import {
  chatChunk,
  type DispatchedAnswer,
  droppedIn,
  type KeptStream,
  outboundChat,
  producedBy,
} from './chat-answer.ts';
import type { CoreContext } from './core-context.ts';
import { chatUsage } from './cost.ts';
import { chunkPieces, type Produced, WrittenAnswer } from './provider-answer.ts';
import type { Target } from './reach.ts';
import { type RouteResult, route, streamBroke, streamEnded } from './route.ts';
import { type ExchangeLimits, endedByUs, exchange, failureAnswer, toUpstreamError } from './target-exchange.ts';

const endsChoice = ({ choices }: UpstreamChunk): boolean => choices.some(({ finish_reason }) => finish_reason !== null);

/**
 * Routes an opened call to a stream of chunks and settles it. The chunk that ends the last choice is held back until usage is
 * known and the settlement committed. Its reader must start it, and must end it or leave the loop: the call is settled in
 * either case, on a departure with what was produced (src/core/README.md, "streams").
 */
export async function* streamChat(
  app: CoreContext,
  answer: DispatchedAnswer,
  request: ChatRequest,
): AsyncGenerator<ChatChunk | WrittenAnswer<ChatChunk>, void, undefined> {
  const startedAt = performance.now();
  const { call } = answer;
  const dropped = droppedIn(request);
  const routed: RouteResult<OpenedStream> = await route(
    app,
    call,
    (target, limits) => openStream(app.transport, target, call, request, limits),
    { kind: 'stream', dropped },
  );
  const { target } = routed;
  call.firstTokenCame();
  app.telemetry.firstToken(target.mapping, performance.now() - startedAt);
  const { modelId } = target.mapping;
  call.facts.context.onDropped(dropped(target));
  const wantsUsageChunk = request.stream_options?.include_usage === true;
  const beforeEnd = wantsUsageChunk ? { usage: null } : {};
  const produced = producedBy(call, target, request);
  const keeper = answer.keep === undefined ? undefined : new StreamKeeper();
  const { longTexts } = routed.value;
  const written = (chunk: ChatChunk): ChatChunk | WrittenAnswer<ChatChunk> =>
    longTexts.isEmpty ? chunk : new WrittenAnswer(chunk, undefined, longTexts);
  let settled = false;
  try {
    let held: UpstreamChunk | undefined;
    for await (const chunk of routed.value) {
      produced.addChunk(chunk);
      if (!longTexts.isEmpty) keeper?.giveUp();
      for (const piece of chunkPieces(chunk)) {
        keeper?.add(piece);
        if (held !== undefined) yield written(chatChunk(answer, held, modelId, beforeEnd));
        held = endsChoice(piece) ? piece : undefined;
        if (held === undefined) yield written(chatChunk(answer, piece, modelId, beforeEnd));
      }
      if (held === undefined && !longTexts.isEmpty) longTexts.forgetPlaced();
    }
    settled = true;
    const end = await settleEnd(app, answer, request, target, produced, keeper);
    const last = held ?? { choices: [], fields: {} };
    if (!wantsUsageChunk) {
      yield written(chatChunk(answer, last, modelId, end));
      return;
    }
    yield written(chatChunk(answer, last, modelId, beforeEnd));
    yield chatChunk(answer, { choices: [], fields: {} }, modelId, end);
  } catch (error) {
    if (settled) throw error;
    settled = true;
    throw await settleBroken(app, call, request, target, produced, error);
  } finally {
    // The reader left at a chunk: the loop above was closed, no error was thrown.
    if (!settled) await settleDeparture(app, call, request, target, produced);
  }
}

/** Books a whole stream; its last chunk carries what is returned. */
async function settleEnd(
  app: CoreContext,
  { call, keep }: DispatchedAnswer,
  request: ChatRequest,
  target: Target,
  produced: Produced,
  keeper: StreamKeeper | undefined,
): Promise<Pick<ChatChunk, 'usage' | 'metadata'>> {
  const { mapping } = target;
  streamEnded(app, call, target);
  const usage = await produced.usage(app.estimator, request, mapping);
  const cost = await call.settle(usage);
  const kept = keeper?.kept();
  if (kept !== undefined) {
    keep?.({ mapping, upstreamModel: produced.model, usage, dropped: droppedIn(request)(target), kept });
  }
  return {
    usage: chatUsage(usage, cost, call.outputLimit(mapping)),
    metadata: callMetadata(call, mapping, produced.model, call.attempts),
  };
}

/** Books a stream whose reader left: what the provider reported, and an estimate of what it did not. */
async function settleDeparture(
  { estimator }: CoreContext,
  call: Call,
  request: ChatRequest,
  { mapping }: Target,
  produced: Produced,
): Promise<void> {
  await call.settle(await produced.usageSoFar(estimator, request, mapping), 499, 'client_closed_request');
}

/**
 * Books a stream that broke: only what the provider itself reported is charged, unless we cut it off. Returns the error for the
 * caller.
 */
async function settleBroken(
  app: CoreContext,
  call: Call,
  request: ChatRequest,
  target: Target,
  produced: Produced,
  error: unknown,
): Promise<unknown> {
  const [failure, cause] = brokenStream(error);
  if (call.facts.context.signal.aborted) {
    await settleDeparture(app, call, request, target, produced);
    return failure;
  }
  if (cause !== undefined) streamBroke(app, call, target, cause);
  // Content that our own bounds cut off was still produced: nobody gets an answer for free by reading it slowly.
  const usage = endedByUs(error)
    ? await produced.usageSoFar(app.estimator, request, target.mapping)
    : produced.reportedUsage(request, target.mapping);
  return call.breakOff(failure, usage);
}

/** The error for the caller, and what the provider or the network did; undefined: the gateway had no room. */
function brokenStream(error: unknown): [failure: unknown, cause: UpstreamError | undefined] {
  const failure = readFailure(error);
  if (failure instanceof ApiError) return [failure, undefined];
  const cause = toUpstreamError(failure);
  return [failureAnswer(cause), cause];
}

/**
 * A stream that has begun to say something: until then an attempt may fail over, from then on it is this one or none. What was
 * read to know it comes first. (No generator: each costs a chunk more than what is done to it here.)
 */
class OpenedStream implements AsyncIterableIterator<UpstreamChunk, void> {
  /** Long texts of the chunks. */
  readonly longTexts: LongTexts;
  readonly #begun: UpstreamChunk[];
  readonly #rest: AsyncIterator<UpstreamChunk, void>;

  constructor(longTexts: LongTexts, begun: UpstreamChunk[], rest: AsyncIterator<UpstreamChunk, void>) {
    this.longTexts = longTexts;
    this.#begun = begun;
    this.#rest = rest;
  }

  next(): Promise<IteratorResult<UpstreamChunk, void>> {
    const value = this.#begun.shift();
    return value === undefined ? this.#rest.next() : Promise.resolve({ done: false, value });
  }

  /** Leaves the upstream's stream. */
  async return(): Promise<IteratorResult<UpstreamChunk, void>> {
    await this.#rest.return?.();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }
}

/** An upstream that says nothing for so many chunks, or characters of them, has begun too: they are held until then. */
const MOST_HELD = 64;
const MOST_HELD_CHARACTERS = 64 * 1024;

/** More than whose turn it is: a piece of any kind, or the end. */
const saysSomething = ({ delta, finish_reason }: ChunkChoice): boolean =>
  finish_reason !== null ||
  Object.entries(delta).some(([name, value]) => name !== 'role' && value !== '' && value !== null);

/** Asks a target for a stream, and reads it until it says something. @throws TransportError, UpstreamError, ApiError 503 */
async function openStream(
  transport: Transport,
  target: Target,
  call: Call,
  request: ChatRequest,
  limits: ExchangeLimits,
): Promise<OpenedStream> {
  const response = await exchange(transport, target, outboundChat(call, request, target), 'streamed', limits);
  const { provider, credential } = target;
  const rest = provider.adapter.parseStream(response, credential.secret)[Symbol.asyncIterator]();
  const begun: UpstreamChunk[] = [];
  try {
    await readBeginning(rest, begun);
    return new OpenedStream(response.longTexts, begun, rest);
  } catch (error) {
    const failure = readFailure(error);
    const reported = begun.findLast(({ usage }) => usage !== undefined)?.usage;
    throw failure instanceof UpstreamError ? failure.withUsage(reported) : failure;
  }
}

/** @param begun gets the chunks that are read */
async function readBeginning(stream: AsyncIterator<UpstreamChunk, void>, begun: UpstreamChunk[]): Promise<void> {
  let characters = 0;
  for (;;) {
    const next = await stream.next();
    if (next.done === true) throw new Error('an adapter ended an empty stream without an error');
    begun.push(next.value);
    if (next.value.choices.some(saysSomething)) return;
    characters += JSON.stringify(next.value).length;
    if (begun.length >= MOST_HELD || characters >= MOST_HELD_CHARACTERS) return;
  }
}

/** The error of reading a stream: one that is not a failure of the network or the gateway was caused by the stream's content. */
const readFailure = (error: unknown): unknown =>
  error instanceof UpstreamError || error instanceof TransportError || error instanceof ApiError
    ? error
    : unreadable(error);

type Chunk = Pick<UpstreamChunk, 'choices' | 'fields'>;

/** A chunk as it is kept: its text alone, when there is nothing else in it; else as JSON, which takes a fraction of the objects. */
type Piece = string | { readonly json: string };

/** Characters beyond which a stream is not kept: many streams run at once. */
const MAX_CHARACTERS = 256 * 1024;
/** Memory of a piece besides its text, in bytes. */
const PIECE_OVERHEAD = 64;

/** The text of a chunk that says nothing but a piece of the first choice's content, and perhaps again whose it is. */
function plainText({ choices }: Chunk): string | undefined {
  const [choice] = choices;
  if (choice === undefined || choices.length > 1 || choice.index !== 0 || choice.finish_reason !== null)
    return undefined;
  const { delta } = choice;
  for (const name in delta) if (name !== 'content' && name !== 'role') return undefined;
  const fields = record(choice);
  for (const name in fields)
    if (name !== 'index' && name !== 'delta' && entryOf(fields, name) !== null) return undefined;
  return typeof delta.content === 'string' ? delta.content : undefined;
}

/** Records a stream while it passes, so that it can be given again. */
class StreamKeeper {
  #pieces: Piece[] = [];
  #characters = 0;
  /** Fields outside the choices, from the first chunk: every chunk has them. */
  #fields: UpstreamChunk['fields'] = {};
  /** Length that they add to each chunk when the stream is replayed. */
  #fieldsLength = 0;

  add(chunk: Chunk): void {
    if (this.#characters > MAX_CHARACTERS) return;
    const isFirst = this.#pieces.length === 0;
    if (isFirst) {
      this.#fields = chunk.fields;
      this.#fieldsLength = JSON.stringify(chunk.fields).length;
    }
    const text = isFirst ? undefined : plainText(chunk); // The role must stand in the first.
    const piece = text ?? { json: JSON.stringify({ choices: chunk.choices, fields: chunk.fields }) };
    this.#characters += PIECE_OVERHEAD + this.#fieldsLength + (typeof piece === 'string' ? piece : piece.json).length;
    this.#pieces.push(piece);
    if (this.#characters > MAX_CHARACTERS) this.giveUp();
  }

  /** Keeps nothing of it. */
  giveUp(): void {
    this.#characters = Number.POSITIVE_INFINITY;
    this.#pieces = [];
    this.#fields = {};
  }

  /** The whole stream; undefined when it was too long to be kept. */
  kept(): KeptStream | undefined {
    if (this.#characters > MAX_CHARACTERS) return undefined;
    const [pieces, fields] = [this.#pieces, this.#fields];
    return { kind: 'stream', characters: this.#characters, chunks: () => replay(pieces, fields) };
  }
}

function* replay(pieces: readonly Piece[], fields: Chunk['fields']): Generator<Chunk, void, undefined> {
  for (const piece of pieces) {
    if (typeof piece === 'string') {
      yield { choices: [{ index: 0, delta: { content: piece }, finish_reason: null }], fields };
    } else {
      const chunk: Chunk = JSON.parse(piece.json);
      yield chunk;
    }
  }
}
