import { NO_USAGE } from '../domain/usage.ts';
import type { ModerationAnswer, ModerationRequest } from '../generated/types.ts';
import { notTakenByProvider } from '../providers/wire/upstream-error.ts';
import type { CallContext, Principal } from './authorize.ts';
import { type CallFacts, callMetadata } from './call.ts';
import type { CoreContext } from './core-context.ts';
import { chatUsage } from './cost.ts';
import { WrittenAnswer } from './provider-answer.ts';
import { resolve } from './resolve.ts';
import { openCall, permit, serveWhole } from './route.ts';
import { exchangeWhole } from './target-exchange.ts';
import { MODERATION_DEMAND } from './worst-case.ts';

/**
 * The one way to moderate, for every door: as for images, but by the fixed model, so that rules on models and prices are skipped
 * (policy/reference.md, "Moderations"). Nobody reports tokens here: only a fee per request costs anything.
 */
export async function moderate(
  app: CoreContext,
  principal: Principal,
  context: CallContext,
  request: ModerationRequest,
): Promise<WrittenAnswer<Omit<ModerationAnswer, 'results'>>> {
  const { candidates, isSandboxFree } = await resolve(app, app.moderationModel, 'moderation', {
    principal,
    clientIp: context.clientIp,
  });
  const facts: CallFacts = {
    principal,
    context,
    action: 'moderation',
    requestedModel: request.model ?? app.moderationModel,
    // It was pinned by the configuration, if at all, and never by the caller.
    requestedProvider: undefined,
    isSandboxFree,
    stream: false,
  };
  const permitted = await permit(app, facts, candidates, () => ({ demand: MODERATION_DEMAND, toolNames: [] }));
  const call = await openCall(
    app,
    facts,
    permitted,
    () => MODERATION_DEMAND,
    () => NO_USAGE,
  );
  const { value, target, usage, cost } = await serveWhole(app, call, async (each, limits) => {
    const { mapping, provider } = each;
    const { moderations } = provider.adapter;
    if (moderations === undefined) throw notTakenByProvider(`${mapping.providerId} does not moderate.`);
    const kind = { operation: 'moderation', call: { request, mapping } } as const;
    return { value: await exchangeWhole(app, each, moderations, kind, limits), usage: NO_USAGE };
  });
  const ours = {
    id: `modr-${call.id.slice('call_'.length)}`,
    model: target.mapping.modelId,
    usage: chatUsage(usage, cost),
    metadata: callMetadata(call, target.mapping, value.model, call.attempts),
  };
  return new WrittenAnswer(ours, value.json[0]);
}
