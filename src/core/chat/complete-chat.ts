import type { Clock } from '../../domain/time.ts';
import type { ChatRequest } from '../../generated/types.ts';
import type { Authorize } from '../access/authorize.ts';
import type { CallContext } from '../access/call-context.ts';
import type { Principal } from '../access/principal.ts';
import type { CallFacts } from '../call/call.ts';
import { openCall } from '../call/open-call.ts';
import { permit } from '../call/whole-call.ts';
import { AUTO } from '../models/auto-choices.ts';
import type { Resolve, Resolved } from '../models/resolve.ts';
import { chatDemand } from '../price/demand.ts';
import { Produced } from '../price/produced.ts';
import type { ChatOutcome, DispatchedAnswer } from './chat-answer.ts';
import { type ChatExchangeDeps, unsupportedIn } from './chat-exchange.ts';
import type { ChooseAuto } from './choose-auto.ts';
import { completeOnce } from './complete-once.ts';
import { cacheKey, type ResponseCache } from './response-cache.ts';
import { findCached, serveCached } from './serve-cached.ts';
import { streamChat } from './stream-chat.ts';

export interface CompleteChatDeps extends ChatExchangeDeps {
  readonly resolve: Resolve;
  readonly chooseAuto: ChooseAuto;
  readonly authorize: Authorize;
  readonly cache: ResponseCache;
  readonly clock: Clock;
  /** Most output tokens for a key with a limit where nothing else tells. */
  readonly defaultMaxOutputTokens: number;
}

/**
 * The one way to complete a chat, for every door: resolve, decide, open the call, route, settle. Throws ApiError, PolicyFailure
 * or StoreUnavailable; whatever was dispatched is settled by then.
 */
export type CompleteChat = (principal: Principal, context: CallContext, request: ChatRequest) => Promise<ChatOutcome>;

export function createCompleteChat(deps: CompleteChatDeps): CompleteChat {
  const { store, cache, clock, telemetry, estimator } = deps;
  return async (principal, context, request) => {
    const { candidates, requestedProvider } = await candidatesOf(deps, principal, context, request);
    const stream = request.stream === true;
    const facts: CallFacts = { principal, context, action: 'chat', requestedModel: request.model, stream };
    const permitted = await permit(deps, facts, candidates);
    const begun = { facts, requestedProvider, created: Math.floor(clock.now() / 1000) };

    const { cacheSeconds } = principal;
    const key = cacheSeconds === undefined || context.noCache ? undefined : cacheKey(principal, request);
    const hit = key === undefined ? undefined : findCached(cache, key, permitted);
    if (key !== undefined) telemetry.cacheLookedUp(hit === undefined ? 'miss' : 'hit');
    if (hit !== undefined) return serveCached(store, begun, permitted, request, hit);

    const call = await openCall(
      store,
      facts,
      permitted,
      () => chatDemand(request, deps.defaultMaxOutputTokens),
      (mapping) => new Produced().usage(estimator, request, mapping),
    );
    const answer: DispatchedAnswer = {
      ...begun,
      call,
      ...(key === undefined || cacheSeconds === undefined
        ? {}
        : {
            keep: (kept) => {
              // What one key's limit has cut short is no answer for another's.
              if (call.outputLimit(kept.mapping)?.isCut !== true) cache.set(key(kept.mapping), kept, cacheSeconds);
            },
          }),
    };
    return stream
      ? { kind: 'stream', chunks: streamChat(deps, answer, request) }
      : { kind: 'completion', completion: await completeOnce(deps, answer, request) };
  };
}

/** Candidates by the name that was asked for, or chosen where that is `auto`. */
async function candidatesOf(
  { resolve, chooseAuto }: CompleteChatDeps,
  principal: Principal,
  { clientIp }: CallContext,
  request: ChatRequest,
): Promise<Resolved> {
  if (request.model !== AUTO) return resolve(request.model, 'chat', principal, unsupportedIn(request));
  return { candidates: await chooseAuto(request, { principal, clientIp }), requestedProvider: undefined };
}
