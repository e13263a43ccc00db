import { invalidRequest } from '../domain/errors.ts';

const TRUE = ['true', '1'];
const FALSE = ['false', '0', ''];

/** A boolean of the query: `true` or `1`; absent, `false`, `0` or empty is false; anything else is 400. */
export function flag(query: Record<string, string | string[] | undefined>, name: string): boolean {
  const value = query[name];
  if (value === undefined || (typeof value === 'string' && FALSE.includes(value))) return false;
  if (typeof value === 'string' && TRUE.includes(value)) return true;
  throw invalidRequest(`The query parameter ${name} must be true or false.`, `/${name}`);
}
