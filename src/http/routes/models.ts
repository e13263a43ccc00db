import type { ModelListOptions } from '../../catalog/list.ts';
import type { Authenticate } from '../../core/access/authenticate.ts';
import type { ListModels } from '../../core/models/list-models.ts';
import type { ModelListBytes } from '../../core/models/model-list-bytes.ts';
import { unknownModel } from '../../core/models/resolve.ts';
import { principalOf } from '../call-context.ts';
import { setPrincipal } from '../middleware/authenticate.ts';
import { type LimitRateDeps, limitKey } from '../middleware/rate-limit.ts';
import type { GatewayId } from '../operations/gateway.ts';
import type { Handlers } from '../register.ts';
import { apiKeyToken } from '../request/credential.ts';
import { flag } from '../request/query-parameter.ts';
import type { AppContext, AppMiddleware } from '../state.ts';
import { pathParameter } from './master/master-route.ts';

export interface ModelsRouteDeps extends LimitRateDeps {
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
