import type { Clock } from '../../domain/time.ts';
import type { ChatRequest } from '../../generated/types.ts';
import type { AuthorizeDeps } from '../access/authorize.ts';
import type { CallContext } from '../access/call-context.ts';
import type { Principal } from '../access/principal.ts';
import { type CallFacts, callMetadata } from '../call/call.ts';
import { exchange } from '../call/exchange.ts';
import { openCall, permit } from '../call/open-call.ts';
import { toolNames } from '../call/policy-facts.ts';
import { serveWhole } from '../call/route.ts';
import { AUTO } from '../models/auto-choices.ts';
import { type ResolveDeps, type Resolved, resolve } from '../models/resolve.ts';
import { chatDemand, type Demand } from '../price/demand.ts';
import { chatUsage } from '../price/meter.ts';
import { Produced } from '../price/produced.ts';
import { type ChatOutcome, chatCompletion, type DispatchedAnswer, type WrittenCompletion } from './chat-answer.ts';
import { type DispatchChatDeps, droppedIn, outboundChat, producedBy, unsupportedIn } from './chat-exchange.ts';
import { type ChooseAutoDeps, chooseAuto } from './choose-auto.ts';
import { cacheKey, type ResponseCache } from './response-cache.ts';
import { findCached, serveCached } from './serve-cached.ts';
import { streamChat } from './stream-chat.ts';

export interface CompleteChatDeps extends DispatchChatDeps, ResolveDeps, AuthorizeDeps, ChooseAutoDeps {
  readonly cache: ResponseCache;
  readonly clock: Clock;
  /** Most output tokens for a key with a limit where nothing else tells. */
  readonly defaultMaxOutputTokens: number;
  /** Fewest to which a limit may shorten an answer. */
  readonly minOutputTokens: number;
}

/**
 * The one way to complete a chat, for every door: resolve, decide, open the call, route, settle.
 * @throws ApiError, PolicyFailure or StoreUnavailable; whatever was dispatched is settled by then
 */
export async function completeChat(
  deps: CompleteChatDeps,
  principal: Principal,
  context: CallContext,
  request: ChatRequest,
): Promise<ChatOutcome> {
  const { cache, clock, telemetry, estimator } = deps;
  const { candidates, requestedProvider, order, isSandboxFree } = await candidatesOf(deps, principal, context, request);
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
  const findDemand = (): Demand => chatDemand(request, deps.defaultMaxOutputTokens, deps.minOutputTokens);
  const permitted = await permit(deps, facts, candidates, () => ({
    demand: findDemand(),
    toolNames: toolNames(request),
  }));
  const created = Math.floor(clock.now() / 1000);

  const { cacheSeconds } = principal;
  const key = cacheSeconds === undefined || context.noCache ? undefined : cacheKey(principal, request, order?.alias);
  const hit = key === undefined ? undefined : findCached(cache, key, permitted);
  if (key !== undefined) telemetry.cacheLookedUp(hit === undefined ? 'miss' : 'hit');
  if (hit !== undefined) return serveCached(deps, facts, created, permitted, request, hit);

  const call = await openCall(deps, facts, permitted, findDemand, (mapping) =>
    new Produced().usage(estimator, request, mapping),
  );
  const answer: DispatchedAnswer = {
    call,
    created,
    ...(key === undefined || cacheSeconds === undefined
      ? {}
      : {
          keep: (kept) => {
            // What one key's limit has cut short is no answer for another's.
            if (call.outputLimit(kept.mapping)?.cutBy === undefined) cache.set(key(kept.mapping), kept, cacheSeconds);
          },
        }),
  };
  return stream
    ? { kind: 'stream', chunks: streamChat(deps, answer, request) }
    : { kind: 'completion', completion: await completeWhole(deps, answer, request) };
}

/** Candidates by the name that was asked for, or chosen where that is `auto`. */
async function candidatesOf(
  deps: CompleteChatDeps,
  principal: Principal,
  { clientIp }: CallContext,
  request: ChatRequest,
): Promise<Resolved> {
  const caller = { principal, clientIp };
  if (request.model !== AUTO) return resolve(deps, request.model, 'chat', caller, unsupportedIn(request));
  const candidates = await chooseAuto(deps, request, caller);
  // The sandbox is among them only where nothing else has a credential.
  return { candidates, requestedProvider: undefined, isSandboxFree: false };
}

/** Routes an open call to a whole answer and settles it. */
async function completeWhole(
  deps: DispatchChatDeps,
  answer: DispatchedAnswer,
  request: ChatRequest,
): Promise<WrittenCompletion> {
  const { transport, answers, estimator } = deps;
  const { call } = answer;
  const dropped = droppedIn(request);
  const served = await serveWhole(
    deps,
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
