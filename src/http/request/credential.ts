import type { IncomingMessage } from 'node:http';
import { invalidRequest } from '../../domain/errors.ts';

const SENT_ONCE = ['authorization', 'x-api-key'];

const SCHEME = 'bearer ';

/** What stands behind the scheme, without blanks around it; undefined for another scheme. */
const afterBearer = (header: string): string | undefined =>
  header.slice(0, SCHEME.length).toLowerCase() === SCHEME ? header.slice(SCHEME.length).trim() : undefined;

/**
 * Refuses a request whose credential is ambiguous: two lines of one header, or two headers that differ
 * (src/http/README.md, "Errors and hostile input"). Read from the raw lines, since Node drops a second `authorization` silently.
 */
function assertUnambiguous(req: IncomingMessage): void {
  const seen = new Map<string, string>();
  for (let i = 0; i < req.rawHeaders.length; i += 2) {
    const name = req.rawHeaders[i];
    if (name === undefined || (name.length !== 13 && name.length !== 9)) continue;
    const lower = name.toLowerCase();
    if (!SENT_ONCE.includes(lower)) continue;
    if (seen.has(lower)) throw invalidRequest(`The request has more than one ${lower} header.`);
    seen.set(lower, req.rawHeaders[i + 1] ?? '');
  }
  const [bearer, apiKey] = [seen.get('authorization'), seen.get('x-api-key')];
  if (bearer !== undefined && apiKey !== undefined && (afterBearer(bearer) ?? bearer) !== apiKey) {
    throw invalidRequest('The request has two different credentials.');
  }
}

/** The API key of a request, as bearer token or, where there is no `authorization`, as `x-api-key`. @throws ApiError 400 as below */
export function apiKeyToken(req: IncomingMessage): string | undefined {
  const token = bearerToken(req);
  const apiKey = req.headers['x-api-key'];
  return req.headers.authorization === undefined && typeof apiKey === 'string' ? apiKey.trim() : token;
}

/** The bearer token of a request, or undefined when it has none. Throws 400 when the credential is ambiguous. */
export function bearerToken(req: IncomingMessage): string | undefined {
  assertUnambiguous(req);
  const token = afterBearer(req.headers.authorization ?? '');
  return token === '' || token?.includes(' ') ? undefined : token;
}
