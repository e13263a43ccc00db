import { checkVisibleText } from '../domain/check-shape.ts';
import { invalidRequest } from '../domain/errors.ts';
import { plainText } from '../lib/text.ts';
import type { PageRequest } from '../store/db/records.ts';
import type { AppMiddleware, RequestContext } from './state.ts';

/** A query parameter that may be given once; twice is 400. */
export function queryParameter({ state }: RequestContext, name: string): string | undefined {
  const [value, ...more] = state.query.getAll(name);
  if (more.length > 0) throw invalidRequest(`The query parameter ${name} is given more than once.`, `/${name}`);
  return value;
}

const TRUE = ['true', '1'];
const FALSE = ['false', '0', ''];

/** A boolean of the query: `true` or `1`; absent, `false`, `0` or empty is false; anything else is 400. */
export function flag({ state }: RequestContext, name: string): boolean {
  const [value = '', ...more] = state.query.getAll(name);
  if (more.length === 0 && FALSE.includes(value)) return false;
  if (more.length === 0 && TRUE.includes(value)) return true;
  throw invalidRequest(`The query parameter ${name} must be true or false.`, `/${name}`);
}

/** The whole query as an object, for a validator; a parameter that is given more than once is a list. */
export function queryObject({ state: { query } }: RequestContext): Record<string, string | string[]> {
  const names = [...new Set(query.keys())];
  return Object.fromEntries(
    names.map((name) => {
      const [value = '', ...more] = query.getAll(name);
      return [name, more.length === 0 ? value : [value, ...more]];
    }),
  );
}

/** Characters of an unknown name that are repeated. */
const MAX_SHOWN = 64;

/**
 * Refuses a query parameter that the route does not take: ignored, a misspelt filter would show everything. Refuses a value that
 * cannot be read.
 * @param known the names that the route takes
 * @throws ApiError 400 that lists the parameters that there are
 */
export function knownQuery(known: readonly string[]): AppMiddleware {
  return (ctx, next) => {
    for (const [name, value] of ctx.state.query) {
      if (known.includes(name)) {
        checkVisibleText(value, `The query parameter ${name}`, `/${name}`);
        continue;
      }
      const taken = known.length === 0 ? 'this request takes none' : `this request takes ${known.join(', ')}`;
      const given = plainText(name).slice(0, MAX_SHOWN);
      throw invalidRequest(`The query parameter ${given} is not known: ${taken}.`, `/${given}`);
    }
    return next();
  };
}

const DEFAULT_LIMIT = 50;
const MAX_LIMIT = 200;

/** `limit` (default 50, at most 200) and `cursor` of a list (src/admin/README.md, "lists"); anything else in them is 400. */
export function pageRequest(ctx: RequestContext): PageRequest {
  const text = queryParameter(ctx, 'limit') ?? String(DEFAULT_LIMIT);
  const limit = /^[0-9]{1,3}$/.test(text) ? Number(text) : 0;
  if (limit < 1 || limit > MAX_LIMIT) {
    throw invalidRequest(`limit must be a whole number from 1 to ${MAX_LIMIT}.`, '/limit');
  }
  return { limit, cursor: queryParameter(ctx, 'cursor') };
}
