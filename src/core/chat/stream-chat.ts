import { ApiError } from '../../domain/errors.ts';
import type { ChatChunk, ChatRequest } from '../../generated/types.ts';
import type { UpstreamChunk } from '../../providers/wire/adapter.ts';
import type { UpstreamError } from '../../providers/wire/upstream-error.ts';
import { endedByUs, failureAnswer, toUpstreamError } from '../call/attempt-failure.ts';
import { type Call, callMetadata } from '../call/call.ts';
import { type Routed, route, streamBroke, streamEnded } from '../call/route.ts';
import { WrittenAnswer } from '../call/written-answer.ts';
import type { Target } from '../models/reach.ts';
import { chunkPieces } from '../price/chunk-pieces.ts';
import { chatUsage } from '../price/meter.ts';
import type { Produced } from '../price/produced.ts';
import { chatChunk, type DispatchedAnswer } from './chat-answer.ts';
import { type DispatchChatDeps, droppedIn, producedBy } from './chat-exchange.ts';
import { type OpenedStream, openStream, readFailure } from './open-stream.ts';
import { StreamKeeper } from './stream-keeper.ts';

const endsChoice = ({ choices }: UpstreamChunk): boolean => choices.some(({ finish_reason }) => finish_reason !== null);

/**
 * Routes an opened call to a stream of chunks and settles it. The chunk that ends the last choice is held back until usage is
 * known and the settlement committed. Its reader must start it, and must end it or leave the loop: the call is settled in
 * either case, on a departure with what was produced (src/core/README.md, "streams").
 */
export async function* streamChat(
  deps: DispatchChatDeps,
  answer: DispatchedAnswer,
  request: ChatRequest,
): AsyncGenerator<ChatChunk | WrittenAnswer<ChatChunk>, void, undefined> {
  const startedAt = performance.now();
  const { call } = answer;
  const dropped = droppedIn(request);
  const routed: Routed<OpenedStream> = await route(
    deps,
    call,
    (target, limits) => openStream(deps.transport, target, call, request, limits),
    { kind: 'stream', dropped },
  );
  const { target } = routed;
  call.firstTokenCame();
  deps.telemetry.firstToken(target.mapping, performance.now() - startedAt);
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
    const end = await settleEnd(deps, answer, request, target, produced, keeper);
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
    throw await settleBroken(deps, call, request, target, produced, error);
  } finally {
    // The reader left at a chunk: the loop above was closed, no error was thrown.
    if (!settled) await settleDeparture(deps, call, request, target, produced);
  }
}

/** Books a whole stream; its last chunk carries what is returned. */
async function settleEnd(
  deps: DispatchChatDeps,
  { call, keep }: DispatchedAnswer,
  request: ChatRequest,
  target: Target,
  produced: Produced,
  keeper: StreamKeeper | undefined,
): Promise<Pick<ChatChunk, 'usage' | 'metadata'>> {
  const { mapping } = target;
  streamEnded(deps, call, target);
  const usage = await produced.usage(deps.estimator, request, mapping);
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
  { estimator }: DispatchChatDeps,
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
  deps: DispatchChatDeps,
  call: Call,
  request: ChatRequest,
  target: Target,
  produced: Produced,
  error: unknown,
): Promise<unknown> {
  const [failure, cause] = brokenStream(error);
  if (call.facts.context.signal.aborted) {
    await settleDeparture(deps, call, request, target, produced);
    return failure;
  }
  if (cause !== undefined) streamBroke(deps, call, target, cause);
  // What our own bounds cut off was still produced: no one gets an answer for nothing by reading it slowly.
  const usage = endedByUs(error)
    ? await produced.usageSoFar(deps.estimator, request, target.mapping)
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
