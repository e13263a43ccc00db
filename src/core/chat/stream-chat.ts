import { ApiError } from '../../domain/errors.ts';
import { NO_USAGE } from '../../domain/usage.ts';
import type { ChatChunk, ChatRequest } from '../../generated/types.ts';
import type { UpstreamChunk } from '../../providers/wire/adapter.ts';
import type { UpstreamError } from '../../providers/wire/upstream-error.ts';
import { settleCall } from '../call/call.ts';
import { limitsOf } from '../call/exchange.ts';
import {
  endedByUs,
  failureAnswer,
  type Routed,
  route,
  streamBroke,
  streamEnded,
  toUpstreamError,
} from '../call/route.ts';
import { failureCode, settleFailure } from '../call/settle-failure.ts';
import { WrittenAnswer } from '../call/written-answer.ts';
import type { Target } from '../models/target.ts';
import { chunkPieces } from '../price/chunk-pieces.ts';
import { chatUsage, costOf, withCharges } from '../price/meter.ts';
import type { Produced } from '../price/produced.ts';
import { callMetadata, chatChunk, type DispatchedAnswer } from './chat-answer.ts';
import { type ChatExchangeDeps, droppedIn, producedBy } from './chat-exchange.ts';
import { type OpenedStream, openStream, readFailure } from './open-stream.ts';
import { StreamKeeper } from './stream-keeper.ts';

const endsChoice = ({ choices }: UpstreamChunk): boolean => choices.some(({ finish_reason }) => finish_reason !== null);

/** Routes an opened call to a stream; a failure is settled. */
async function routeStream(
  deps: ChatExchangeDeps,
  { call, facts }: DispatchedAnswer,
  request: ChatRequest,
): Promise<Routed<OpenedStream>> {
  const { context, principal } = facts;
  try {
    const open = (target: Target, totalTimeoutMs: number): Promise<OpenedStream> =>
      openStream(deps, target, call, request, limitsOf(facts, totalTimeoutMs));
    return await route(deps, call, principal, context, open, { kind: 'stream', dropped: droppedIn(request) });
  } catch (error) {
    throw await settleFailure(deps.store, call, context, error);
  }
}

/**
 * Routes an opened call to a stream of chunks and settles it. The chunk that ends the last choice is held back until usage is
 * known and the settlement committed. Its reader must start it, and must end it or leave the loop: the call is settled in
 * either case, on a departure with what was produced (src/core/README.md, "streams").
 */
export async function* streamChat(
  deps: ChatExchangeDeps,
  answer: DispatchedAnswer,
  request: ChatRequest,
): AsyncGenerator<ChatChunk | WrittenAnswer<ChatChunk>, void, undefined> {
  const startedAt = performance.now();
  const routed = await routeStream(deps, answer, request);
  deps.telemetry.firstToken(routed.target.mapping, performance.now() - startedAt);
  const { modelId } = routed.target.mapping;
  answer.facts.context.onDropped(droppedIn(request)(routed.target));
  const wantsUsageChunk = request.stream_options?.include_usage === true;
  const beforeEnd = wantsUsageChunk ? { usage: null } : {};
  const produced = producedBy(answer.call, routed.target, request);
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
    const end = await settleEnd(deps, answer, request, routed, produced, keeper);
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
  const { target, attempts, charges } = routed;
  streamEnded(deps, routed);
  const usage = await produced.usage(estimator, request, target.mapping);
  const cost = costOf(usage, target.mapping);
  await settleCall(store, answer.call, { statusCode: 200, errorCode: null, target, attempts, usage, cost, charges });
  const kept = keeper?.kept();
  if (kept !== undefined) {
    const dropped = droppedIn(request)(target);
    answer.keep?.({ mapping: target.mapping, upstreamModel: produced.model, usage, dropped, kept });
  }
  const limit = answer.call.outputLimit(target.mapping);
  return {
    usage: chatUsage(usage, withCharges(cost, charges), limit),
    metadata: callMetadata(answer, target.mapping, produced.model, attempts),
  };
}

/** Books a stream whose reader left: what the provider reported, and an estimate of what it did not. */
async function settleDeparture(
  { store, estimator }: ChatExchangeDeps,
  { call }: DispatchedAnswer,
  request: ChatRequest,
  { target, attempts, charges }: Routed<OpenedStream>,
  produced: Produced,
): Promise<void> {
  const usage = await produced.usageSoFar(estimator, request, target.mapping);
  const cost = costOf(usage, target.mapping);
  const [statusCode, errorCode] = [499, 'client_closed_request'];
  await settleCall(store, call, { statusCode, errorCode, target, attempts, usage, cost, charges });
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
  const { target, charges } = routed;
  if (facts.context.signal.aborted) {
    await settleDeparture(deps, answer, request, routed, produced);
    return brokenStream(error)[0];
  }
  const [failure, cause] = brokenStream(error);
  const attempts = cause === undefined ? routed.attempts : streamBroke(deps, call, routed, cause);
  const [statusCode, errorCode] = failureCode(failure, facts.context);
  // What our own bounds cut off was produced all the same: nobody gets an answer for nothing by reading it slowly.
  const usage = endedByUs(error)
    ? await produced.usageSoFar(deps.estimator, request, target.mapping)
    : produced.reportedUsage(request, target.mapping);
  const cost = usage === undefined ? undefined : costOf(usage, target.mapping);
  const billed = { usage: usage ?? NO_USAGE, cost, charges };
  await settleCall(deps.store, call, { statusCode, errorCode, target, attempts, ...billed });
  return failure;
}

/** What the caller is told, and what the provider or the network did; undefined: the gateway had no room. */
function brokenStream(error: unknown): [failure: unknown, cause: UpstreamError | undefined] {
  const failure = readFailure(error);
  if (failure instanceof ApiError) return [failure, undefined];
  const cause = toUpstreamError(failure);
  return [failureAnswer(cause), cause];
}
