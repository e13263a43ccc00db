import { invalidRequest } from '../../domain/errors.ts';
import type { AppContext } from '../state.ts';

/** A query parameter that may be given once; twice is 400. */
export function queryParameter({ state }: AppContext, name: string): string | undefined {
  const [value, ...more] = state.query.getAll(name);
  if (more.length > 0) throw invalidRequest(`The query parameter ${name} is given more than once.`, `/${name}`);
  return value;
}

const TRUE = ['true', '1'];
const FALSE = ['false', '0', ''];

/** A boolean of the query: `true` or `1`; absent, `false`, `0` or empty is false; anything else is 400. */
export function flag({ state }: AppContext, name: string): boolean {
  const [value = '', ...more] = state.query.getAll(name);
  if (more.length === 0 && FALSE.includes(value)) return false;
  if (more.length === 0 && TRUE.includes(value)) return true;
  throw invalidRequest(`The query parameter ${name} must be true or false.`, `/${name}`);
}

/** The whole query as an object, for a validator; a parameter that is given more than once is a list. */
export function queryObject({ state: { query } }: AppContext): Record<string, string | string[]> {
  const names = [...new Set(query.keys())];
  return Object.fromEntries(
    names.map((name) => {
      const [value = '', ...more] = query.getAll(name);
      return [name, more.length === 0 ? value : [value, ...more]];
    }),
  );
}
