import type { IncomingMessage } from 'node:http';
import { type ApiError, invalidRequest } from '../../domain/errors.ts';

const SCHEME = 'bearer ';

/** What stands behind the scheme, without blanks around it; undefined for another scheme. */
const afterBearer = (header: string): string | undefined =>
  header.slice(0, SCHEME.length).toLowerCase() === SCHEME ? header.slice(SCHEME.length).trim() : undefined;

/**
 * Refuses a request whose credential is ambiguous: two lines of one header, or two headers that differ
 * (src/http/README.md, "Errors and hostile input"). Read from the raw lines, since Node drops a second `authorization` silently.
 */
function assertUnambiguous({ rawHeaders }: IncomingMessage): void {
  let bearer: string | undefined;
  let apiKey: string | undefined;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i];
    if (is(name, 'authorization')) {
      if (bearer !== undefined) throw sentTwice('authorization');
      bearer = rawHeaders[i + 1] ?? '';
    } else if (is(name, 'x-api-key')) {
      if (apiKey !== undefined) throw sentTwice('x-api-key');
      apiKey = rawHeaders[i + 1] ?? '';
    }
  }
  if (bearer !== undefined && apiKey !== undefined && (afterBearer(bearer) ?? bearer) !== apiKey) {
    throw invalidRequest('The request has two different credentials.');
  }
}

/** Whether a header has this name, given in small letters. */
const is = (header: string | undefined, name: string): boolean =>
  header?.length === name.length && header.toLowerCase() === name;

const sentTwice = (header: string): ApiError => invalidRequest(`The request has more than one ${header} header.`);

/** The API key of a request, as bearer token or, where there is no `authorization`, as `x-api-key`. @throws ApiError 400 as below */
export function apiKeyToken(req: IncomingMessage): string | undefined {
  const token = bearerToken(req);
  const apiKey = req.headers['x-api-key'];
  if (req.headers.authorization !== undefined || typeof apiKey !== 'string') return token;
  return apiKey.trim() === '' ? undefined : apiKey.trim();
}

/** The bearer token of a request, or undefined when it has none. Throws 400 when the credential is ambiguous. */
export function bearerToken(req: IncomingMessage): string | undefined {
  assertUnambiguous(req);
  const token = afterBearer(req.headers.authorization ?? '');
  return token === '' || token?.includes(' ') ? undefined : token;
}
