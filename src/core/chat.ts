import type { Mapping } from '../domain/model.ts';
import { NO_USAGE } from '../domain/usage.ts';
import type { ChatChunk, ChatRequest } from '../generated/types.ts';
import type { CallContext, Permitted, Principal } from './authorize.ts';
import { AUTO, choicesFor, choose, nothingFits } from './auto.ts';
import { type CallFacts, callMetadata, toolNames } from './call.ts';
import {
  type AnswerFacts,
  type CachedAnswer,
  type CacheKey,
  type ChatOutcome,
  cacheKey,
  chatChunk,
  chatCompletion,
  type DispatchedAnswer,
  droppedIn,
  type KeptStream,
  outboundChat,
  producedBy,
  type ResponseCache,
  type WrittenCompletion,
} from './chat-answer.ts';
import type { CoreContext } from './core-context.ts';
import { chatUsage, costOf } from './cost.ts';
import type { Demand } from './operations.ts';
import { Produced } from './provider-answer.ts';
import type { ListCaller } from './reachable.ts';
import { type FindUnsupported, type Resolved, resolve, takers } from './resolve.ts';
import { openCall, permit, recordCacheHit, serveWhole } from './route.ts';
import { streamChat } from './stream-chat.ts';
import { exchange } from './target-exchange.ts';
import { chatDemand } from './worst-case.ts';

/**
 * The one way to complete a chat, for every door: resolve, decide, open the call, route, settle.
 * @throws ApiError, PolicyFailure or StoreUnavailable; whatever was dispatched is settled by then
 */
export async function completeChat(
  app: CoreContext,
  principal: Principal,
  context: CallContext,
  request: ChatRequest,
): Promise<ChatOutcome> {
  const { cache, clock, telemetry, estimator } = app;
  const { candidates, requestedProvider, order, isSandboxFree } = await candidatesOf(app, principal, context, request);
  const stream = request.stream === true;
  const requestedModel = request.model;
  const facts: CallFacts = {
    principal,
    context,
    action: 'chat',
    requestedModel,
    requestedProvider,
    order,
    isSandboxFree,
    stream,
  };
  const findDemand = (): Demand => chatDemand(request, app.defaultMaxOutputTokens, app.minOutputTokens);
  const permitted = await permit(app, facts, candidates, () => ({
    demand: findDemand(),
    toolNames: toolNames(request),
  }));
  const created = Math.floor(clock.now() / 1000);

  const { cacheSeconds } = principal;
  const key = cacheSeconds === undefined || context.noCache ? undefined : cacheKey(principal, request, order?.alias);
  const hit = key === undefined ? undefined : findCached(cache, key, permitted);
  if (key !== undefined) telemetry.cacheLookedUp(hit === undefined ? 'miss' : 'hit');
  if (hit !== undefined) return serveCached(app, facts, created, permitted, request, hit);

  const call = await openCall(app, facts, permitted, findDemand, (mapping) =>
    new Produced().usage(estimator, request, mapping),
  );
  const answer: DispatchedAnswer = {
    call,
    created,
    ...(key === undefined || cacheSeconds === undefined
      ? {}
      : {
          keep: (kept) => {
            // An answer that one key's limit has cut short must not serve another key.
            if (call.outputLimit(kept.mapping)?.cutBy === undefined) cache.set(key(kept.mapping), kept, cacheSeconds);
          },
        }),
  };
  return stream
    ? { kind: 'stream', chunks: streamChat(app, answer, request) }
    : { kind: 'completion', completion: await completeWhole(app, answer, request) };
}

/** The part of a chat request that a provider cannot take. */
const unsupportedIn =
  (request: ChatRequest): FindUnsupported =>
  (mapping, { adapter, namedFields }) =>
    adapter.unsupported({ request, mapping, namedFields });

/** Candidates by the name that was asked for, or chosen where that is `auto`. */
async function candidatesOf(
  app: CoreContext,
  principal: Principal,
  { clientIp }: CallContext,
  request: ChatRequest,
): Promise<Resolved> {
  const caller = { principal, clientIp };
  if (request.model !== AUTO) return resolve(app, request.model, 'chat', caller, unsupportedIn(request));
  const candidates = await chooseAuto(app, request, caller);
  // The sandbox is among them only where nothing else has a credential.
  return { candidates, requestedProvider: undefined, isSandboxFree: false };
}

/** Routes an open call to a whole answer and settles it. */
async function completeWhole(
  app: CoreContext,
  answer: DispatchedAnswer,
  request: ChatRequest,
): Promise<WrittenCompletion> {
  const { transport, answers, estimator } = app;
  const { call } = answer;
  const dropped = droppedIn(request);
  const served = await serveWhole(
    app,
    call,
    async (target, limits) => {
      const response = await exchange(transport, target, outboundChat(call, request, target), 'gathered', limits);
      call.attemptEnds();
      const value = await answers.read(target, { operation: 'chat' }, response, limits);
      const produced = producedBy(call, target, request);
      produced.addTold(value);
      return { value, usage: await produced.usage(estimator, request, target.mapping) };
    },
    { dropped },
  );
  const { value, target, usage, cost } = served;
  const { mapping } = target;
  const [json] = value.json;
  const left = dropped(target);
  call.facts.context.onDropped(left);
  answer.keep?.({ mapping, upstreamModel: value.model, usage, dropped: left, kept: { kind: 'whole', json } });
  return chatCompletion(
    answer,
    json,
    mapping.modelId,
    chatUsage(usage, cost, call.outputLimit(mapping)),
    callMetadata(call, mapping, value.model, call.attempts),
  );
}

/** A kept answer of the first permitted candidate that has one: only who may be called may be quoted. */
function findCached(cache: ResponseCache, key: CacheKey, { candidates }: Permitted): CachedAnswer | undefined {
  for (const mapping of candidates) {
    const hit = cache.get(key(mapping));
    if (hit !== undefined) return hit;
  }
  return undefined;
}

/** Gives a kept answer again, under a call of its own that costs nothing; resolves when that is on record. */
async function serveCached(
  app: CoreContext,
  facts: CallFacts,
  created: number,
  permitted: Permitted,
  request: ChatRequest,
  { mapping, upstreamModel, usage, dropped, kept }: CachedAnswer,
): Promise<ChatOutcome> {
  const call = { id: await recordCacheHit(app, facts, permitted, mapping), facts };
  const answer: AnswerFacts = { call, created };
  facts.context.onCacheHit();
  facts.context.onDropped(dropped);
  const metadata = callMetadata(call, mapping, upstreamModel, [], true);
  const free = chatUsage(usage, costOf(NO_USAGE, { prices: {} }));
  if (kept.kind === 'whole') {
    return { kind: 'completion', completion: chatCompletion(answer, kept.json, mapping.modelId, free, metadata) };
  }
  return { kind: 'stream', chunks: streamCached(answer, request, mapping.modelId, kept, { usage: free, metadata }) };
}

async function* streamCached(
  answer: AnswerFacts,
  request: ChatRequest,
  modelId: string,
  kept: KeptStream,
  end: Pick<ChatChunk, 'usage' | 'metadata'>,
): AsyncGenerator<ChatChunk, void, undefined> {
  const wantsUsageChunk = request.stream_options?.include_usage === true;
  const beforeEnd = wantsUsageChunk ? { usage: null } : {};
  let held: Parameters<typeof chatChunk>[1] | undefined;
  for (const chunk of kept.chunks()) {
    if (held !== undefined) yield chatChunk(answer, held, modelId, beforeEnd);
    held = chunk;
  }
  const last = held ?? { choices: [], fields: {} };
  yield chatChunk(answer, last, modelId, wantsUsageChunk ? beforeEnd : end);
  if (wantsUsageChunk) yield chatChunk(answer, { choices: [], fields: {} }, modelId, end);
}

/**
 * The candidates of `auto`: the three cheapest that fit the request and are permitted; where none is permitted, the 64 cheapest
 * that fit, so that the decision can say why (src/core/README.md, "lists"). It only chooses: the decision follows.
 * @throws ApiError 404 when nothing fits, PolicyFailure
 */
async function chooseAuto(
  { findReachable, clock }: CoreContext,
  request: ChatRequest,
  caller: ListCaller,
): Promise<readonly Mapping[]> {
  const { reach, mappings, usable } = await findReachable(caller);
  const fitting = choicesFor(request, mappings, clock.now());
  if (fitting.length === 0) throw nothingFits();
  return choose(takers(fitting, reach, unsupportedIn(request)), usable);
}
