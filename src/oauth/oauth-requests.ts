// Requests of clients, brought into the one form that the authorization server takes: clients differ more than the standards
// admit.

import type { Configuration } from 'oidc-provider';
import { checkContent } from '../domain/check-shape.ts';
import { ApiError, notFound } from '../domain/errors.ts';
import { OAUTH_SCOPE } from '../domain/identity.ts';
import type { ClientRegistration } from '../generated/types.ts';
import { validator } from '../lib/schemas.ts';
import { plainText } from '../lib/text.ts';
import type { GatheredResponse } from '../net/exchange.ts';
import type { Transport, TransportOptions } from '../net/transport.ts';
import { TransportError, type TransportErrorKind } from '../net/transport-error.ts';
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
  params.set('scope', OAUTH_SCOPE);
  return params;
}

/** Brings a token request into that form. */
export function tokenParams(given: URLSearchParams): URLSearchParams {
  const params = new URLSearchParams(given);
  withPlainResource(params);
  if (params.get('grant_type') === 'client_credentials' || params.has('scope')) params.set('scope', OAUTH_SCOPE);
  return params;
}

/** Metadata of RFC 7591 that means something here; RFC 7591 lets a server ignore the rest. */
const METADATA = [
  'application_type',
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

/** Pages about the client. */
const PAGE_FIELDS = ['client_uri', 'logo_uri', 'policy_uri', 'tos_uri'] as const;

/** The usable parts of a request to register a client. */
interface Registration {
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

/**
 * The client's metadata, with what clients leave out: which kind of application it is follows from its addresses, since those that
 * run on a person's machine seldom say so, and only such may use any port of loopback (RFC 8252).
 * @returns what is wrong, in words, for what is no registration or too much of one
 */
export function registrationOf(body: unknown): Registration | string {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return 'The body must be a JSON object.';
  const given = metadataIn(body);
  if (typeof given === 'string') return given;
  const { application_type: kind, client_name: name, redirect_uris: uris = [], grant_types: grants = [] } = given;
  const fault = addressFault(given);
  if (fault !== undefined) return fault;
  const isNative = kind === 'native' || uris.some(isOfThisMachine);
  return {
    metadata: {
      // A client that states no grants can refresh its tokens: otherwise a person would have to consent every hour.
      grant_types: ['authorization_code', 'refresh_token'],
      ...given,
      // A program wrote it, for people to read.
      ...(name === undefined ? {} : { client_name: plainText(name) }),
      scope: OAUTH_SCOPE,
      application_type: isNative ? 'native' : 'web',
    },
    actsByItself: grants.includes('client_credentials'),
  };
}

const EXPLANATIONS = [
  { at: /^\/client_name$/, must: `must be a text of at most ${LONGEST.name} characters` },
  { at: /^\/(\w+_uri|redirect_uris\/\d+)$/, must: `must be an address of at most ${LONGEST.uri} characters` },
];

/** The fields that mean something, each of its type; or what is wrong. One that is null is as if it were not there. */
function metadataIn(body: object): ClientRegistration | string {
  const given = new Map<string, unknown>(Object.entries(body));
  const named = METADATA.flatMap((name) =>
    (given.get(name) ?? null) === null ? [] : [[name, given.get(name)] as const],
  );
  try {
    return checkContent(validator('ClientRegistration'), Object.fromEntries(named), EXPLANATIONS, /^$/);
  } catch (error) {
    if (error instanceof ApiError) return error.message;
    throw error;
  }
}

function addressFault(given: ClientRegistration): string | undefined {
  const ofRedirects = (given.redirect_uris ?? []).map((uri) => redirectFault(uri));
  const ofPages = PAGE_FIELDS.map((name) => {
    const uri = given[name];
    return uri === undefined ? undefined : pageFault(name, uri);
  });
  return [...ofRedirects, ...ofPages].find((fault) => fault !== undefined);
}

const LOOPBACK = ['localhost', '127.0.0.1', '[::1]'];

/** `com.example.app:`, as RFC 8252 (section 7.1) has it: no one else's, and no scheme with a meaning of its own in a browser. */
const OWN_SCHEME = /^[a-z][a-z0-9+-]*(?:\.[a-z0-9+-]+)+:$/;

/** Others, such as `;` and `*`, are part of a host for URLs and mean something else in a header. */
const PLAIN_HOST = /^(?:[a-z0-9_-]+(?:\.[a-z0-9_-]+)*\.?|\[[0-9a-f:.]+\])$/;

/** URL parsers leave them out, or take them for something else. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are looked for
const UNCLEAR = /[\u0000-\u0020\u007f-\u009f\\]/;

/**
 * Why codes are not sent to an address; undefined: they may be. Codes are not sent in clear, to what looks like another's address
 * (OAuth 2.1, section 2.3), or to schemes that anyone can claim or that a browser acts on.
 */
export const redirectFault = (uri: string): string | undefined =>
  uriFault('redirect_uris', uri, (url) =>
    isOfWeb(url) || OWN_SCHEME.test(url.protocol)
      ? undefined
      : 'must use https, http on loopback (localhost, 127.0.0.1, [::1]), or a scheme in reverse-domain form such as com.example.app:/callback',
  );

const pageFault = (field: string, uri: string): string | undefined =>
  uriFault(field, uri, (url) => (isOfWeb(url) ? undefined : 'must use https, or http on loopback'));

function uriFault(field: string, uri: string, schemeFault: (url: URL) => string | undefined): string | undefined {
  const url = URL.parse(uri);
  const isWeb = url?.protocol === 'https:' || url?.protocol === 'http:';
  const fault =
    (UNCLEAR.test(uri) ? 'must hold addresses without spaces, backslashes and control characters' : undefined) ??
    (url?.username || url?.password ? 'must not hold a user name or a password' : undefined) ??
    (url === null ? 'must hold valid addresses' : schemeFault(url)) ??
    (isWeb && !PLAIN_HOST.test(url.hostname)
      ? 'must name a host by letters, digits, dots, hyphens and underscores'
      : undefined);
  return fault === undefined ? undefined : `${field} ${fault}.`;
}

const isOfWeb = ({ protocol, hostname }: URL): boolean =>
  protocol === 'https:' || (protocol === 'http:' && LOOPBACK.includes(hostname));

/** An application on a person's machine listens on loopback, or has a scheme of its own. */
function isOfThisMachine(uri: string): boolean {
  const url = URL.parse(uri);
  if (url === null) return false;
  return url.protocol === 'http:' ? LOOPBACK.includes(url.hostname) : url.protocol !== 'https:';
}

const TIMEOUT_MS = 2000;
const MAX_BYTES = 5 * 1024;

/** Anyone can name a document: its host gets little time. The error page of a host may be larger than a document. */
export const DOCUMENT_BOUNDS = {
  connectTimeoutMs: TIMEOUT_MS,
  firstByteTimeoutMs: TIMEOUT_MS,
  idleTimeoutMs: TIMEOUT_MS,
  totalTimeoutMs: TIMEOUT_MS,
  maxResponseBytes: 64 * 1024,
  maxConnections: 4,
} as const satisfies Partial<TransportOptions>;

/** Why the document of a client cannot be used: a sentence for anyone, which tells nothing of our network. */
export class DocumentFault extends Error {}

/** A host that is refused and one that is not there are reported in the same words: else anyone could look around in our network. */
const TRANSPORT_FAULTS: Readonly<Record<TransportErrorKind, string>> = {
  connection: 'Its metadata document cannot be reached at a public address.',
  timeout: 'Its metadata document took too long.',
  too_large: 'Its metadata document is too large.',
  bad_response: 'Its metadata document is not sent as plain HTTP.',
  aborted: 'Its metadata document took too long.',
};

/**
 * Fetches the metadata document of a client that is named by the document's URL, and brings it into the form of a registration: it
 * means as much as one, and clients leave out the same things. @throws DocumentFault
 */
export function createFetchDocument(transport: Pick<Transport, 'send'>): NonNullable<Configuration['fetch']> {
  async function get(url: URL): Promise<GatheredResponse> {
    try {
      const response = await transport.send(
        {
          origin: url.origin,
          path: url.pathname + url.search,
          method: 'GET',
          headers: { accept: 'application/json', 'user-agent': 'Portcullis' },
          stream: false,
          addresses: 'public',
        },
        { signal: new AbortController().signal, share: 'oauth', room: () => {} },
      );
      if (response.kind === 'gathered') return response;
    } catch (error) {
      if (error instanceof TransportError) throw new DocumentFault(TRANSPORT_FAULTS[error.kind], { cause: error });
      throw error;
    }
    throw new Error('a gathered answer was asked for and a stream came');
  }

  return async (input) => {
    const id = String(input);
    if (id.length > LONGEST.uri) throw new DocumentFault(`Its address is longer than ${LONGEST.uri} characters.`);
    const { status, headers, body, text } = await get(new URL(id));
    if (status !== 200) throw new DocumentFault(`Its metadata document is answered with status ${status}.`);
    if (body.length > MAX_BYTES) throw new DocumentFault(`Its metadata document is larger than ${MAX_BYTES} bytes.`);
    const cacheControl = headers['cache-control'];
    return new Response(JSON.stringify(documentMetadata(text)), {
      headers: typeof cacheControl === 'string' ? { 'cache-control': cacheControl } : {},
    });
  };
}

/** The metadata that means something here, with what `oidc-provider` checks of a document next to it. @throws DocumentFault */
function documentMetadata(text: string): object {
  const document = parsed(text);
  const registration = registrationOf(document);
  if (typeof registration === 'string') throw new DocumentFault(`Its metadata document is refused. ${registration}`);
  const { client_id, client_secret, client_secret_expires_at } = document;
  // The default of a registration is a secret, which such a client cannot have.
  const noSecret = { token_endpoint_auth_method: 'none' };
  return { ...noSecret, ...registration.metadata, client_id, client_secret, client_secret_expires_at };
}

function parsed(text: string): Readonly<Record<string, unknown>> {
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch {
    // Below.
  }
  if (typeof document === 'object' && document !== null && !Array.isArray(document)) return { ...document };
  throw new DocumentFault('Its metadata document is not a JSON object.');
}
