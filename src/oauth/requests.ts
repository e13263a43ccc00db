// What clients send, brought into the one form that the authorization server takes: clients differ more than the standards say.
import { ApiError, notFound } from '../domain/errors.ts';
import { SCOPE } from '../domain/oauth-token.ts';
import { plainText } from '../lib/text.ts';
import type { Database } from '../store/db/database.ts';
import {
  countWaitingClients,
  countWaitingOfNetworks,
  findMostWaiting,
  forgetOldestWaiting,
  type Registrant,
} from '../store/sign-in/oauth.ts';

/** A member answers a request that does not wait for them. */
export const noRequest = (): ApiError =>
  notFound('This request has expired or was already answered. Connect again from your application.');

/** RFC 8707: the resource with and without a final slash is one. */
function withPlainResource(params: URLSearchParams): void {
  const resources = params.getAll('resource');
  params.delete('resource');
  for (const resource of resources)
    params.append('resource', resource.endsWith('/') ? resource.slice(0, -1) : resource);
}

/** There is one scope: who asks for none or for others, too, is asking for that. The answer says what was granted. */
export function authorizationParams(given: URLSearchParams): URLSearchParams {
  const params = new URLSearchParams(given);
  withPlainResource(params);
  params.set('scope', SCOPE);
  return params;
}

/** The same for a request of a token. */
export function tokenParams(given: URLSearchParams): URLSearchParams {
  const params = new URLSearchParams(given);
  withPlainResource(params);
  if (params.get('grant_type') === 'client_credentials' || params.has('scope')) params.set('scope', SCOPE);
  return params;
}

/** Metadata of RFC 7591 that means something here; RFC 7591 lets a server ignore the rest. */
const METADATA = [
  'client_name',
  'client_uri',
  'contacts',
  'grant_types',
  'logo_uri',
  'policy_uri',
  'redirect_uris',
  'response_types',
  'token_endpoint_auth_method',
  'tos_uri',
] as const;

/** The usable parts of a request to register a client. */
export interface Registration {
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly actsByItself: boolean;
}

/** Clients of one registrant that may wait for someone to allow them, and of all addresses together. */
const MOST_WAITING = 100;
const MOST_OF_NETWORKS = 1000;

/** No page of consent is open for longer: who waits longer gives way. */
const HOUR = 3_600_000;

/**
 * Makes room for a client that was just stored: anyone may register, so that each address and each key has a share, in which the oldest
 * client gives way once it has waited for an hour; where all addresses together are too many, one of the address with the most gives way.
 * Who shows a key has nothing to do with the addresses. @throws ApiError 429 when the share is used up, 503 when there is no room at all
 */
export function checkRoom(db: Database, registrant: Registrant, now: number): void {
  const own = countWaitingClients(db, registrant);
  if (own > MOST_WAITING && !forgetOldestWaiting(db, registrant, now - HOUR)) {
    throw new ApiError(429, 'rate_limit_exceeded', TOO_MANY_OWN);
  }
  if (!registrant.startsWith('network:') || countWaitingOfNetworks(db) <= MOST_OF_NETWORKS) return;
  const most = findMostWaiting(db);
  const before = most === undefined || most.count <= 1 ? now - HOUR : now;
  if (most === undefined || !forgetOldestWaiting(db, most.registrant, before)) {
    throw new ApiError(503, 'overloaded', TOO_MANY);
  }
}

const TOO_MANY_OWN = `${MOST_WAITING} applications that you have registered wait for someone to allow them. Allow one, or try again in an hour.`;
const TOO_MANY =
  'Too many applications wait for someone to allow them. Register with a gateway key, or try again in an hour.';

/** Characters of a client's name, and of an address. */
export const LONGEST = { name: 100, uri: 2000 };
const MOST_URIS = 20;

const textsOf = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((each) => typeof each === 'string') : [];

/**
 * The client's metadata, with what clients leave out: which kind of application it is follows from its addresses, since those that
 * run on a person's machine seldom say so, and only such may use any port of loopback (RFC 8252).
 * @returns what is wrong, in words, for what is no registration or too much of one
 */
export function registrationOf(body: unknown): Registration | string {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return 'The body must be a JSON object.';
  const given: Readonly<Record<string, unknown>> = { ...body };
  const metadata = Object.fromEntries(
    METADATA.flatMap((name) => (given[name] === undefined || given[name] === null ? [] : [[name, given[name]]])),
  );
  const uris = textsOf(given.redirect_uris);
  if (uris.length > MOST_URIS) return `redirect_uris holds more than ${MOST_URIS} addresses.`;
  if (JSON.stringify(metadata).length > MOST_URIS * LONGEST.uri) return 'The metadata is too large.';
  if (uris.some((uri) => uri.length > LONGEST.uri)) return `An address is longer than ${LONGEST.uri} characters.`;
  const fault = uris.map(redirectFault).find((each) => each !== undefined);
  if (fault !== undefined) return fault;
  if (String(given.client_name ?? '').length > LONGEST.name) {
    return `client_name is longer than ${LONGEST.name} characters.`;
  }
  const isNative = uris.some(isOfThisMachine) || given.application_type === 'native';
  return {
    metadata: {
      // Who says nothing of grants can refresh what it gets: else a person would have to consent every hour.
      grant_types: ['authorization_code', 'refresh_token'],
      ...metadata,
      // A program wrote it, for people to read.
      ...(typeof given.client_name === 'string' ? { client_name: plainText(given.client_name) } : {}),
      scope: SCOPE,
      application_type: isNative ? 'native' : 'web',
    },
    actsByItself: textsOf(given.grant_types).includes('client_credentials'),
  };
}

const LOOPBACK = ['localhost', '127.0.0.1', '[::1]'];

/**
 * What the authorization server would let pass: codes sent in clear, and addresses that look like another's (OAuth 2.1, section
 * 2.3).
 */
function redirectFault(uri: string): string | undefined {
  const url = URL.parse(uri);
  if (url === null) return undefined; // the authorization server says so
  if (url.username !== '' || url.password !== '') return 'redirect_uris must not hold a user name or a password.';
  const isClear = url.protocol === 'http:' && !LOOPBACK.includes(url.hostname);
  return isClear ? 'redirect_uris must use https, or http on loopback.' : undefined;
}

/** An application on a person's machine listens on loopback, or has a scheme of its own. */
function isOfThisMachine(uri: string): boolean {
  const url = URL.parse(uri);
  if (url === null) return false;
  return url.protocol === 'http:' ? LOOPBACK.includes(url.hostname) : url.protocol !== 'https:';
}
