import { hash } from 'node:crypto';
import type { ModelListOptions } from '../../catalog/list.ts';
import type { Authenticate } from '../../core/authenticate.ts';
import type { ListModels } from '../../core/list-models.ts';
import { invalidRequest } from '../../domain/errors.ts';
import { bearerToken } from '../credential.ts';
import type { AppMiddleware } from '../state.ts';

export interface ModelsRouteDeps {
  authenticate: Authenticate;
  listModels: ListModels;
}

const TRUE = ['true', '1'];
const FALSE = ['false', '0', ''];

/** A boolean of the query: `true` or `1`; absent, `false`, `0` or empty is false; anything else is 400. */
function flag(query: Record<string, string | string[] | undefined>, name: string): boolean {
  const value = query[name];
  if (value === undefined || (typeof value === 'string' && FALSE.includes(value))) return false;
  if (typeof value === 'string' && TRUE.includes(value)) return true;
  throw invalidRequest(`The query parameter ${name} must be true or false.`, `/${name}`);
}

interface CatalogueBytes {
  readonly body: string;
  readonly etag: string;
  readonly builtAt: number;
}

/** The whole catalogue's bytes, built once for each query, and again after a minute: models are deactivated at dates. */
function createCatalogueBytes(listModels: ListModels): (options: ModelListOptions) => Promise<CatalogueBytes> {
  const built = new Map<string, CatalogueBytes>();
  return async (options) => {
    const key = JSON.stringify(options);
    const known = built.get(key);
    if (known !== undefined && performance.now() - known.builtAt < 60_000) return known;
    const body = JSON.stringify((await listModels(undefined, options)).list);
    const bytes = { body, etag: `"${hash('sha256', body, 'base64url')}"`, builtAt: performance.now() };
    built.set(key, bytes);
    return bytes;
  };
}

/** `GET /v1/models`: the whole catalogue without a key, what the key may use with one (decisions.md, section 6). */
export function modelsRoute({ authenticate, listModels }: ModelsRouteDeps): AppMiddleware {
  const catalogueBytes = createCatalogueBytes(listModels);
  return async (ctx) => {
    const options: ModelListOptions = {
      includeDeactivated: flag(ctx.query, 'include_deactivated'),
      excludeDeprecated: flag(ctx.query, 'exclude_deprecated'),
      noTraining: flag(ctx.query, 'no_training'),
      mapped: flag(ctx.query, 'mapped'),
    };
    const includeRestricted = flag(ctx.query, 'include_restricted');
    ctx.type = 'application/json';
    const token = bearerToken(ctx.req);
    const keyed = ctx.req.headers.authorization !== undefined;
    if (keyed) ctx.state.principal = await authenticate(token);
    ctx.set('cache-control', keyed ? 'private, no-store' : 'public, no-cache');
    if (ctx.state.principal !== undefined && !includeRestricted) {
      const { list, policyRevision } = await listModels(
        { principal: ctx.state.principal, clientIp: ctx.state.clientIp },
        options,
      );
      if (policyRevision !== undefined) ctx.set('x-policy-revision', policyRevision);
      ctx.body = JSON.stringify(list);
      return;
    }
    const { body, etag } = await catalogueBytes(options);
    ctx.status = 200;
    ctx.set('etag', etag);
    if (!keyed && ctx.fresh) ctx.status = 304;
    else ctx.body = body;
  };
}
