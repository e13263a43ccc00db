import type { Clock } from '../../domain/time.ts';
import { NO_USAGE } from '../../domain/usage.ts';
import type { ModerationAnswer, ModerationRequest } from '../../generated/types.ts';
import { notTakenByProvider } from '../../providers/wire/upstream-error.ts';
import type { Authorize } from '../access/authorize.ts';
import type { CallContext } from '../access/call-context.ts';
import type { Principal } from '../access/principal.ts';
import type { CallFacts } from '../call/call.ts';
import { type ExchangeLimits, exchangeWhole } from '../call/exchange.ts';
import { openCall } from '../call/open-call.ts';
import type { ReadAnswer } from '../call/read-answer.ts';
import { permit, serveWhole, type WholeCallDeps } from '../call/whole-call.ts';
import { WrittenAnswer } from '../call/written-answer.ts';
import { callMetadata } from '../chat/chat-answer.ts';
import type { Resolve } from '../models/resolve.ts';
import type { Target } from '../models/target.ts';
import { MODERATION_DEMAND } from '../price/demand.ts';
import { chatUsage } from '../price/meter.ts';

export interface ModerateDeps extends WholeCallDeps {
  readonly resolve: Resolve;
  readonly authorize: Authorize;
  readonly clock: Clock;
  /** The one that moderates, whatever a request names. */
  readonly model: string;
}

/**
 * The one way to moderate, for every door: as for images, but by the fixed model, so that rules on models and prices are skipped
 * (policy/README.md, "Moderation?"). Nobody reports tokens here: only a fee per request costs anything.
 */
export type Moderate = (
  principal: Principal,
  context: CallContext,
  request: ModerationRequest,
) => Promise<WrittenAnswer<Omit<ModerationAnswer, 'results'>>>;

export function createModerate(deps: ModerateDeps): Moderate {
  const { resolve, store, clock, model } = deps;

  async function judge(request: ModerationRequest, target: Target, limits: ExchangeLimits): Promise<ReadAnswer> {
    const { mapping, provider } = target;
    const { moderations } = provider.adapter;
    if (moderations === undefined) throw notTakenByProvider(`${mapping.providerId} does not moderate.`);
    return exchangeWhole(deps, target, moderations, { operation: 'moderation', call: { request, mapping } }, limits);
  }

  return async (principal, context, request) => {
    const { candidates } = await resolve(model, 'moderation', principal);
    const requestedModel = request.model ?? model;
    const facts: CallFacts = { principal, context, action: 'moderation', requestedModel, stream: false };
    const permitted = await permit(deps, facts, candidates);
    const call = await openCall(
      store,
      facts,
      permitted,
      () => MODERATION_DEMAND,
      () => NO_USAGE,
    );
    const { value, target, attempts, usage, cost } = await serveWhole(
      deps,
      call,
      facts,
      (each, limits) => judge(request, each, limits),
      () => NO_USAGE,
    );
    // The provider was pinned by the configuration, if at all, and never by the caller.
    const answer = { facts, call, requestedProvider: undefined, created: Math.floor(clock.now() / 1000) };
    const ours = {
      id: `modr-${call.id.slice('call_'.length)}`,
      model: target.mapping.modelId,
      usage: chatUsage(usage, cost),
      metadata: callMetadata(answer, target.mapping, value.model, attempts),
    };
    return new WrittenAnswer(ours, value.json[0]);
  };
}
