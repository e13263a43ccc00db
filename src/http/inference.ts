import type { ModelListOptions } from '../catalog/model-list.ts';
import type { Authenticate } from '../core/caller.ts';
import { type CompleteChatDeps, completeChat } from '../core/chat.ts';
import { type GenerateImageDeps, generateImage } from '../core/generate-image.ts';
import type { ListModels, ModelListBytes } from '../core/list-models.ts';
import { type ModerateDeps, moderate } from '../core/moderate.ts';
import { lacksModel, unknownModel, withDefaultModel } from '../core/resolve.ts';
import { validator } from '../lib/schemas.ts';
import {
  type MetadataForm,
  metadataForm,
  type SendEventsDeps,
  sendEvents,
  sendJsonText,
  writtenInForm,
} from './answer.ts';
import { apiKeyToken, callContext, type LimitRateDeps, limitKey, principalOf, setPrincipal } from './authenticate.ts';
import { checkedBody } from './body.ts';
import { pathParameter } from './master/master-route.ts';
import type { GatewayId } from './operations/gateway-operations.ts';
import { flag } from './query.ts';
import type { Handlers } from './routes.ts';
import type { AppContext, AppMiddleware } from './state.ts';

interface ChatCompletionsDeps extends SendEventsDeps, CompleteChatDeps {
  metadataForm: MetadataForm;
}

/** `POST /v1/chat/completions`: OpenAI's request and answer, JSON or server-sent events. */
export function chatCompletionsRoute(deps: ChatCompletionsDeps): AppMiddleware {
  return async (ctx) => {
    if (lacksModel(ctx.state.body)) {
      ctx.state.body = await withDefaultModel(deps.findReach, principalOf(ctx), ctx.state.body);
    }
    const request = checkedBody(ctx, validator('ChatRequest'), deps.telemetry);
    const form = metadataForm(ctx, deps.metadataForm);
    const outcome = await completeChat(deps, principalOf(ctx), callContext(ctx), request);
    if (outcome.kind === 'completion') sendJsonText(ctx, writtenInForm(outcome.completion, form));
    else await sendEvents(deps, ctx, outcome.chunks, form, { end: '[DONE]' });
  };
}

interface ImagesDeps extends SendEventsDeps, GenerateImageDeps {
  metadataForm: MetadataForm;
}

/** `POST /v1/images/generations`: OpenAI's request and answer, JSON or server-sent events. */
export function imagesRoute(deps: ImagesDeps): AppMiddleware {
  return async (ctx) => {
    const request = checkedBody(ctx, validator('ImageRequest'), deps.telemetry);
    const form = metadataForm(ctx, deps.metadataForm);
    const outcome = await generateImage(deps, principalOf(ctx), callContext(ctx), request);
    if (outcome.kind === 'answer') sendJsonText(ctx, writtenInForm(outcome.answer, form));
    else await sendEvents(deps, ctx, outcome.events, form, { nameOf: ({ type }) => type });
  };
}

interface ModerationsDeps extends ModerateDeps {
  metadataForm: MetadataForm;
}

/** `POST /v1/moderations`: OpenAI's request and answer. */
export function moderationsRoute(deps: ModerationsDeps): AppMiddleware {
  return async (ctx) => {
    const request = checkedBody(ctx, validator('ModerationRequest'), deps.telemetry);
    const form = metadataForm(ctx, deps.metadataForm);
    const answer = await moderate(deps, principalOf(ctx), callContext(ctx), request);
    sendJsonText(ctx, writtenInForm(answer, form));
  };
}

interface ModelsRouteDeps extends LimitRateDeps {
  authenticate: Authenticate;
  listModels: ListModels;
}

/** Which list the caller gets: the catalogue as everyone has it, all that their organization could use, or what they may. */
type Which = 'catalogue' | 'all' | 'usable';

const listOptions = (ctx: AppContext): ModelListOptions => ({
  includeDeactivated: flag(ctx, 'include_deactivated'),
  excludeDeprecated: flag(ctx, 'exclude_deprecated'),
  noTraining: flag(ctx, 'no_training'),
  mapped: flag(ctx, 'mapped'),
});

/** Sets the headers of either case. @throws ApiError 400, 401, 429, 503 */
async function whichList(ctx: AppContext, deps: ModelsRouteDeps): Promise<Which> {
  const includeRestricted = flag(ctx, 'include_restricted');
  const token = apiKeyToken(ctx.req);
  if (token === undefined && ctx.req.headers.authorization === undefined) {
    ctx.set('cache-control', 'public, no-cache');
    return 'catalogue';
  }
  setPrincipal(ctx, await deps.authenticate(token));
  limitKey(ctx, deps, 'models');
  ctx.set('cache-control', 'private, no-store');
  return includeRestricted ? 'all' : 'usable';
}

async function listOf(
  ctx: AppContext,
  listModels: ListModels,
  options: ModelListOptions,
  which: Which,
): Promise<ModelListBytes> {
  if (which === 'catalogue') return (await listModels(undefined, options)).list;
  const caller = { principal: principalOf(ctx), clientIp: ctx.state.clientIp };
  const { list, policyRevision } = await listModels(caller, options, which);
  if (policyRevision !== undefined) ctx.set('x-policy-revision', policyRevision);
  return list;
}

/** The whole catalogue without a key, what the key may use with one (src/http/README.md, "Endpoints"). */
function listRoute(deps: ModelsRouteDeps): AppMiddleware {
  return async (ctx) => {
    const options = listOptions(ctx);
    const which = await whichList(ctx, deps);
    const { bytes, etag } = await listOf(ctx, deps.listModels, options, which);
    ctx.type = 'application/json';
    ctx.status = 200;
    if (which === 'catalogue') ctx.set('etag', etag);
    if (which === 'catalogue' && ctx.fresh) ctx.status = 304;
    else ctx.body = bytes;
  };
}

/** One entry of the list, by canonical id, alias or `provider/model`; the list's query parameters hold here too. */
function oneRoute(deps: ModelsRouteDeps): AppMiddleware {
  return async (ctx) => {
    const name = pathParameter(ctx, 'id');
    const options = listOptions(ctx);
    const which = await whichList(ctx, deps);
    const find = async (mapped: boolean): Promise<Buffer | undefined> =>
      (await listOf(ctx, deps.listModels, { ...options, mapped }, which)).find(name);
    const model = (await find(false)) ?? (name.includes('/') ? await find(true) : undefined);
    if (model === undefined) throw unknownModel(name, (await listOf(ctx, deps.listModels, options, which)).names());
    ctx.type = 'application/json';
    ctx.body = model;
  };
}

/** `GET /v1/models` and `GET /v1/models/{id}`, whose id may hold `/`, encoded or not. */
export const modelsHandlers = (deps: ModelsRouteDeps) =>
  ({
    listModels: listRoute(deps),
    getModel: oneRoute(deps),
  }) satisfies Partial<Handlers<GatewayId>>;
