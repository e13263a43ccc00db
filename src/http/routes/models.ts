import { hash } from 'node:crypto';
import type Router from '@koa/router';
import type { ModelListOptions } from '../../catalog/list.ts';
import type { Authenticate } from '../../core/authenticate.ts';
import type { ListModels } from '../../core/list-models.ts';
import { modelNotFound } from '../../domain/errors.ts';
import type { Model, ModelList } from '../../generated/types.ts';
import { bearerToken } from '../credential.ts';
import type { LimitRate } from '../middleware/rate-limit.ts';
import { flag } from '../query-flag.ts';
import type { AppContext, AppMiddleware, RequestState } from '../state.ts';
import { pathParameter } from './master/master-route.ts';

export interface ModelsRouteDeps {
  authenticate: Authenticate;
  listModels: ListModels;
  /** Holds for callers with a key: without one there is no organization whose requests could be counted. */
  limited: LimitRate;
}

interface WholeCatalogue {
  readonly list: ModelList;
  readonly body: string;
  readonly etag: string;
  readonly builtAt: number;
}

type FindCatalogue = (options: ModelListOptions) => Promise<WholeCatalogue>;

/** The whole catalogue, built once for each query, and again after a minute: models are deactivated at dates. */
function createFindCatalogue(listModels: ListModels): FindCatalogue {
  const built = new Map<string, WholeCatalogue>();
  return async (options) => {
    const key = JSON.stringify(options);
    const known = built.get(key);
    if (known !== undefined && performance.now() - known.builtAt < 60_000) return known;
    const { list } = await listModels(undefined, options);
    const body = JSON.stringify(list);
    const whole = { list, body, etag: `"${hash('sha256', body, 'base64url')}"`, builtAt: performance.now() };
    built.set(key, whole);
    return whole;
  };
}

const listOptions = (query: AppContext['query']): ModelListOptions => ({
  includeDeactivated: flag(query, 'include_deactivated'),
  excludeDeprecated: flag(query, 'exclude_deprecated'),
  noTraining: flag(query, 'no_training'),
  mapped: flag(query, 'mapped'),
});

/**
 * Which list the caller gets: the catalogue as anybody has it, all that his organization could use (`include_restricted`), or what
 * he may. Sets the headers of either case. @throws ApiError 400, 401, 429
 */
async function whichList(
  ctx: AppContext,
  { authenticate, limited }: ModelsRouteDeps,
): Promise<'catalogue' | 'all' | 'usable'> {
  const includeRestricted = flag(ctx.query, 'include_restricted');
  const token = bearerToken(ctx.req);
  const keyed = ctx.req.headers.authorization !== undefined;
  if (keyed) {
    ctx.state.principal = await authenticate(token);
    await limited(ctx);
  }
  ctx.set('cache-control', keyed ? 'private, no-store' : 'public, no-cache');
  if (!keyed) return 'catalogue';
  return includeRestricted ? 'all' : 'usable';
}

/** The list of what the caller's key may use and could call now, or of all beside what it is not permitted. */
async function ownList(
  ctx: AppContext,
  listModels: ListModels,
  options: ModelListOptions,
  which: 'all' | 'usable',
): Promise<ModelList> {
  const { principal } = ctx.state;
  const caller = principal === undefined ? undefined : { principal, clientIp: ctx.state.clientIp };
  const { list, policyRevision } = await listModels(caller, options, which);
  if (policyRevision !== undefined) ctx.set('x-policy-revision', policyRevision);
  return list;
}

/** The whole catalogue without a key, what the key may use with one (decisions.md, section 6). */
function listRoute(deps: ModelsRouteDeps, findCatalogue: FindCatalogue): AppMiddleware {
  return async (ctx) => {
    const options = listOptions(ctx.query);
    ctx.type = 'application/json';
    const which = await whichList(ctx, deps);
    if (which !== 'catalogue') {
      ctx.body = JSON.stringify(await ownList(ctx, deps.listModels, options, which));
      return;
    }
    const { body, etag } = await findCatalogue(options);
    ctx.status = 200;
    ctx.set('etag', etag);
    if (ctx.state.principal === undefined && ctx.fresh) ctx.status = 304;
    else ctx.body = body;
  };
}

/** The entry that a name means: an id before an alias. */
const named = ({ data }: ModelList, name: string): Model | undefined =>
  data.find(({ id }) => id === name) ?? data.find(({ aliases = [] }) => aliases.includes(name));

/** One entry of the list, by canonical id, alias or `provider/model`; the list's query parameters hold here too. */
function oneRoute(deps: ModelsRouteDeps, findCatalogue: FindCatalogue): AppMiddleware {
  return async (ctx) => {
    const name = pathParameter(ctx, 'id');
    const options = listOptions(ctx.query);
    const which = await whichList(ctx, deps);
    const find = async (mapped: boolean): Promise<Model | undefined> => {
      const wanted = { ...options, mapped };
      const list =
        which === 'catalogue' ? (await findCatalogue(wanted)).list : await ownList(ctx, deps.listModels, wanted, which);
      return named(list, name);
    };
    const model = (await find(false)) ?? (name.includes('/') ? await find(true) : undefined);
    if (model === undefined) throw modelNotFound(`The model \`${name}\` does not exist.`);
    ctx.body = model;
  };
}

/** `GET /v1/models` and `GET /v1/models/{id}`, whose id may hold `/`, encoded or not. */
export function modelsRoutes(router: Router<RequestState>, deps: ModelsRouteDeps): void {
  const findCatalogue = createFindCatalogue(deps.listModels);
  router.get('/v1/models', listRoute(deps, findCatalogue));
  router.get('/v1/models/*id', oneRoute(deps, findCatalogue));
}
