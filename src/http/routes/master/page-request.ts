import { invalidRequest } from '../../../domain/errors.ts';
import type { PageRequest } from '../../../store/db/page.ts';
import { queryParameter } from '../../request/query-parameter.ts';
import type { AppContext } from '../../state.ts';

const DEFAULT_LIMIT = 50;
const MAX_LIMIT = 200;

/** `limit` (default 50, at most 200) and `cursor` of a list (src/admin/README.md, "lists"); anything else in them is 400. */
export function pageRequest(ctx: AppContext): PageRequest {
  const text = queryParameter(ctx, 'limit') ?? String(DEFAULT_LIMIT);
  const limit = /^[0-9]{1,3}$/.test(text) ? Number(text) : 0;
  if (limit < 1 || limit > MAX_LIMIT) {
    throw invalidRequest(`limit must be a whole number from 1 to ${MAX_LIMIT}.`, '/limit');
  }
  return { limit, cursor: queryParameter(ctx, 'cursor') };
}
