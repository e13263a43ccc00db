import { NO_USAGE } from '../domain/usage.ts';
import type { ChatChunk, ChatRequest, ChunkChoice } from '../generated/types.ts';
import type { UpstreamChunk } from '../providers/adapter.ts';
import type { UpstreamError } from '../providers/upstream-error.ts';
import { type Call, settleCall } from './call.ts';
import { callMetadata, chatChunk, type DispatchedAnswer } from './chat-answer.ts';
import {
  type ChatExchangeDeps,
  droppedIn,
  endedByUs,
  exchangeChat,
  failureCode,
  producedBy,
  settleFailure,
} from './chat-exchange.ts';
import { chunkPieces } from './chunk-pieces.ts';
import { chatUsage, costOf } from './meter.ts';
import type { Produced } from './produced.ts';
import { failureAnswer, type Routed, route, streamBroke, streamEnded, toUpstreamError } from './route.ts';
import { StreamKeeper } from './stream-keeper.ts';
import type { Target } from './target.ts';

/**
 * A stream that has begun to say something: until then an attempt may fail over, from then on it is this one or none. What was
 * read to know it comes first. (No generator: each costs a chunk more than what is done to it here.)
 */
class OpenedStream implements AsyncIterableIterator<UpstreamChunk, void> {
  readonly #begun: UpstreamChunk[];
  readonly #rest: AsyncIterator<UpstreamChunk, void>;

  constructor(begun: UpstreamChunk[], rest: AsyncIterator<UpstreamChunk, void>) {
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

/** An upstream that says nothing for so many chunks has begun all the same: they are held until then. */
const MOST_HELD = 64;

/** More than whose turn it is: a piece of any kind, or the end. */
const saysSomething = ({ delta, finish_reason }: ChunkChoice): boolean =>
  finish_reason !== null ||
  Object.entries(delta).some(([name, value]) => name !== 'role' && value !== '' && value !== null);

async function openStream(
  deps: ChatExchangeDeps,
  target: Target,
  call: Call,
  request: ChatRequest,
  limits: { readonly signal: AbortSignal; readonly totalTimeoutMs: number },
): Promise<OpenedStream> {
  const response = await exchangeChat(deps, target, call, request, 'streamed', limits);
  const { provider, credential } = target;
  const rest = provider.adapter.parseStream(response, credential.secret)[Symbol.asyncIterator]();
  const begun: UpstreamChunk[] = [];
  for (;;) {
    const next = await rest.next();
    if (next.done === true) throw new Error('an adapter ended an empty stream without an error');
    begun.push(next.value);
    if (begun.length >= MOST_HELD || next.value.choices.some(saysSomething)) return new OpenedStream(begun, rest);
  }
}

const endsChoice = ({ choices }: UpstreamChunk): boolean => choices.some(({ finish_reason }) => finish_reason !== null);

/** Routes an opened call to a stream; a failure is settled. */
async function routeStream(
  deps: ChatExchangeDeps,
  { call, facts: { context, principal } }: DispatchedAnswer,
  request: ChatRequest,
): Promise<Routed<OpenedStream>> {
  try {
    const open = (target: Target, totalTimeoutMs: number): Promise<OpenedStream> =>
      openStream(deps, target, call, request, { signal: context.signal, totalTimeoutMs });
    return await route(deps, call, principal, context, open, { kind: 'stream', dropped: droppedIn(request) });
  } catch (error) {
    throw await settleFailure(deps.store, call, context, error);
  }
}

/**
 * Routes an opened call to a stream of chunks and settles it. The chunk that ends the last choice is held back until usage is
 * known and the settlement committed. Whoever reads it must begin, and must end it or leave the loop: the call is settled in
 * either case, on a departure with what was produced (decisions.md, section 5, "streaming", "cancel").
 */
export async function* streamChat(
  deps: ChatExchangeDeps,
  answer: DispatchedAnswer,
  request: ChatRequest,
): AsyncGenerator<ChatChunk, void, undefined> {
  const startedAt = performance.now();
  const routed = await routeStream(deps, answer, request);
  deps.telemetry.firstToken(routed.target.mapping, performance.now() - startedAt);
  const { modelId } = routed.target.mapping;
  answer.facts.context.onDropped(droppedIn(request)(routed.target));
  const wantsUsageChunk = request.stream_options?.include_usage === true;
  const beforeEnd = wantsUsageChunk ? { usage: null } : {};
  const produced = producedBy(answer.call, routed.target, request);
  const keeper = answer.keep === undefined ? undefined : new StreamKeeper();
  let settled = false;
  try {
    let held: UpstreamChunk | undefined;
    for await (const chunk of routed.value) {
      produced.addChunk(chunk);
      for (const piece of chunkPieces(chunk)) {
        keeper?.add(piece);
        if (held !== undefined) yield chatChunk(answer, held, modelId, beforeEnd);
        held = endsChoice(piece) ? piece : undefined;
        if (held === undefined) yield chatChunk(answer, piece, modelId, beforeEnd);
      }
    }
    settled = true;
    const end = await settleEnd(deps, answer, request, routed, produced, keeper);
    const last = held ?? { choices: [], fields: {} };
    if (!wantsUsageChunk) {
      yield chatChunk(answer, last, modelId, end);
      return;
    }
    yield chatChunk(answer, last, modelId, beforeEnd);
    yield chatChunk(answer, { choices: [], fields: {} }, modelId, end);
  } catch (error) {
    if (settled) throw error;
    settled = true;
    throw await settleBroken(deps, answer, request, routed, produced, error);
  } finally {
    // The reader left at a chunk: the loop above was closed, no error was thrown.
    if (!settled) await settleDeparture(deps, answer, request, routed, produced);
  }
}

/** Books a whole stream; its last chunk carries what is returned. */
async function settleEnd(
  deps: ChatExchangeDeps,
  answer: DispatchedAnswer,
  request: ChatRequest,
  routed: Routed<OpenedStream>,
  produced: Produced,
  keeper: StreamKeeper | undefined,
): Promise<Pick<ChatChunk, 'usage' | 'metadata'>> {
  const { store, estimator } = deps;
  const { target, attempts } = routed;
  streamEnded(deps, routed);
  const usage = await produced.usage(estimator, request, target.mapping);
  const cost = costOf(usage, target.mapping);
  await settleCall(store, answer.call, { statusCode: 200, errorCode: null, target, attempts, usage, cost });
  const kept = keeper?.kept();
  if (kept !== undefined) {
    const dropped = droppedIn(request)(target);
    answer.keep?.({ mapping: target.mapping, upstreamModel: produced.model, usage, dropped, kept });
  }
  const limit = answer.call.outputLimit(target.mapping);
  return {
    usage: chatUsage(usage, cost, limit),
    metadata: callMetadata(answer, target.mapping, produced.model, attempts),
  };
}

/** Books a stream whose reader left: what the provider reported, and an estimate of what it did not. */
async function settleDeparture(
  { store, estimator }: ChatExchangeDeps,
  { call }: DispatchedAnswer,
  request: ChatRequest,
  { target, attempts }: Routed<OpenedStream>,
  produced: Produced,
): Promise<void> {
  const usage = await produced.usageSoFar(estimator, request, target.mapping);
  const cost = costOf(usage, target.mapping);
  await settleCall(store, call, { statusCode: 499, errorCode: 'client_closed_request', target, attempts, usage, cost });
}

/** Books a stream that broke: only what the provider itself reported is charged, unless we cut it off. Returns the error for the caller. */
async function settleBroken(
  deps: ChatExchangeDeps,
  answer: DispatchedAnswer,
  request: ChatRequest,
  routed: Routed<OpenedStream>,
  produced: Produced,
  error: unknown,
): Promise<unknown> {
  const { call, facts } = answer;
  const { target } = routed;
  if (facts.context.signal.aborted) {
    await settleDeparture(deps, answer, request, routed, produced);
    return brokenStream(error)[0];
  }
  const [failure, cause] = brokenStream(error);
  const attempts = cause === undefined ? routed.attempts : streamBroke(deps, call, routed, cause);
  const [statusCode, errorCode] = failureCode(failure, facts.context);
  // What our own bounds cut off was produced all the same: nobody gets an answer for nothing by reading it slowly.
  const usage = endedByUs(cause)
    ? await produced.usageSoFar(deps.estimator, request, target.mapping)
    : produced.reportedUsage(request, target.mapping);
  const cost = usage === undefined ? undefined : costOf(usage, target.mapping);
  await settleCall(deps.store, call, { statusCode, errorCode, target, attempts, usage: usage ?? NO_USAGE, cost });
  return failure;
}

/** What the caller is told, and what the provider or the network did; undefined: it was a fault of ours. */
function brokenStream(error: unknown): [failure: unknown, cause: UpstreamError | undefined] {
  try {
    const cause = toUpstreamError(error);
    return [failureAnswer(cause), cause];
  } catch (bug) {
    return [bug, undefined];
  }
}
