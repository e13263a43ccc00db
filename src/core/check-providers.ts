import { apiKeyVariable, type ServiceConfig } from '../config/upstreams.ts';
import { type EncryptionKey, type OrganizationProviders, openSecret } from '../domain/provider.ts';
import type { OutboundRequest, Transport } from '../net/transport.ts';
import { TransportError } from '../net/transport-error.ts';
import { type Credential, type Provider, type Providers, parseBaseUrl } from '../providers/providers.ts';
import { type AttemptCause, causeOf, explainCause, fromTransportError } from '../providers/wire/upstream-error.ts';
import { errorText, type Telemetry } from '../telemetry/telemetry.ts';

/** A way to call a provider, whether it works or not. */
export interface Access {
  readonly provider: Provider;
  /** A variable of the environment, the label of a provider key, or that none is needed. */
  readonly source: string;
  /** Undefined: the secret cannot be opened with the encryption key that is there. */
  readonly credential: Credential | undefined;
}

/** The result of asking a provider. */
export interface AccessCheck {
  /** Undefined: it works. */
  readonly cause: AttemptCause | 'credential_unreadable' | undefined;
  readonly explanation: string | undefined;
  readonly durationMs: number;
}

/** The ways that the environment gives: credentials of the catalogue's providers, and upstreams. */
export function environmentAccesses({ upstreams, serviceProviders }: ServiceConfig, providers: Providers): Access[] {
  const named = [
    ...serviceProviders
      .filter(({ apiKey }) => apiKey !== undefined)
      .map(({ id }) => ({ id, source: `${id.toUpperCase()}_API_KEY` })),
    ...upstreams.map(({ name, apiKey }) => ({
      id: name,
      source: apiKey === undefined ? 'no credential needed' : apiKeyVariable(name),
    })),
  ];
  return named.flatMap(({ id, source }) => {
    const provider = providers.find(id);
    const credential = providers.serviceCredential(id);
    return provider === undefined || credential === undefined ? [] : [{ provider, source, credential }];
  });
}

/** The ways that an organization has of its own: its provider keys, and custom providers that need none. */
export function ownAccesses(
  own: OrganizationProviders,
  providers: Providers,
  encryptionKeys: readonly EncryptionKey[],
): Access[] {
  const custom = new Map(own.providers.map((each) => [`custom:${each.name}`, providers.custom(each)]));
  const keyed = own.keys.flatMap(({ id, label, provider: name, baseUrl, secret }): Access[] => {
    const known = custom.get(name) ?? providers.find(name);
    if (known === undefined) return [];
    // An address from the database must be a public one.
    const provider: Provider =
      baseUrl === null ? known : { ...known, base: parseBaseUrl(baseUrl), addresses: 'public' };
    return [
      {
        provider,
        source: label,
        credential: opened(() => openSecret(secret, id, ...encryptionKeys), id, label, providers),
      },
    ];
  });
  const keyless = own.providers.flatMap(({ name, keyless: isKeyless }): Access[] => {
    const provider = custom.get(`custom:${name}`);
    const needsNone = isKeyless && !own.keys.some((key) => key.provider === `custom:${name}`);
    return provider === undefined || !needsNone
      ? []
      : [{ provider, source: 'no credential needed', credential: { source: 'byok' } }];
  });
  return [...keyed, ...keyless];
}

function opened(open: () => string, id: string, label: string, providers: Providers): Credential | undefined {
  try {
    return providers.byok(id, label, open());
  } catch {
    return undefined;
  }
}

const ANTHROPIC_VERSION = '2023-06-01';

/**
 * Requests that cost nothing and need the credential, first the list of models. A server may have none; then a chat is asked for that
 * every server refuses, once it has looked at address and credential.
 */
function probesOf({ provider, credential }: Access): OutboundRequest[] {
  const { wire, id, base, addresses } = provider;
  const secret = credential?.secret;
  const request = (path: string, headers: Record<string, string>, body?: string): OutboundRequest => ({
    origin: base.origin,
    path: `${base.path}${path}`,
    method: body === undefined ? 'GET' : 'POST',
    headers: {
      accept: 'application/json',
      ...headers,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body }),
    stream: false,
    addresses,
  });
  switch (wire) {
    case 'google':
      return [request('/models?pageSize=1', secret === undefined ? {} : { 'x-goog-api-key': secret })];
    case 'anthropic': {
      const path = base.path.endsWith('/v1') ? '' : '/v1';
      const headers = {
        'anthropic-version': ANTHROPIC_VERSION,
        ...(secret === undefined ? {} : { 'x-api-key': secret }),
      };
      return [request(`${path}/models?limit=1`, headers), request(`${path}/messages`, headers, '{"messages":[]}')];
    }
    case 'openai': {
      const headers: Record<string, string> = secret === undefined ? {} : { authorization: `Bearer ${secret}` };
      // Its list of models is everyone's.
      const first = id === 'openrouter' ? '/key' : '/models';
      return [request(first, headers), request('/chat/completions', headers, '{"messages":[]}')];
    }
  }
}

/** Causes of an answer that say that the server has looked at the request itself: address and credential are right. */
const TAKEN: ReadonlySet<AttemptCause> = new Set(['request_rejected', 'model_unknown', 'rate_limited']);

/** Tries a way once. @param limitMs for each of at most two requests */
export async function checkAccess(transport: Transport, access: Access, limitMs: number): Promise<AccessCheck> {
  const startedAt = performance.now();
  const done = (cause: AccessCheck['cause'], explanation = explainCause(cause ?? '')): AccessCheck => ({
    cause,
    explanation,
    durationMs: Math.round(performance.now() - startedAt),
  });
  if (access.credential === undefined) {
    return done('credential_unreadable', 'The secret cannot be opened: the encryption key is another one.');
  }
  let cause: AttemptCause | undefined;
  for (const probe of probesOf(access)) {
    cause = await ask(transport, access, probe, limitMs);
    if (cause === undefined) return done(undefined);
    if (cause !== 'wrong_path' && !TAKEN.has(cause)) return done(cause);
    // A list of models that is refused in another way proves nothing yet.
    if (probe.method === 'POST' && TAKEN.has(cause)) return done(undefined);
  }
  return done(cause);
}

/** The provider was not reached, or had no time: who runs offline, or without a name server, has no wrong credential. */
const UNREACHED: ReadonlySet<string> = new Set([
  ...[
    'connection_refused',
    'unknown_host',
    'name_look_up_failed',
    'unreachable',
    'connection_reset',
    'connection_failed',
  ],
  ...['connect_timeout', 'first_byte_timeout', 'idle_timeout', 'total_timeout', 'provider_timeout', 'provider_failed'],
]);

/** At a start nobody waits for it, and no one should see it for long. */
const START_LIMIT_MS = 10_000;

/** Tries each credential of the environment once, one after the other, and says which does not work. Never rejects. */
export async function checkEnvironment(
  accesses: readonly Access[],
  { transport, telemetry, stopping }: StartCheckDeps,
): Promise<void> {
  for (const access of accesses) {
    if (access.credential?.secret === undefined) continue;
    try {
      const { cause, explanation = '' } = await checkAccess(transport, access, START_LIMIT_MS);
      if (stopping.aborted) return;
      const failure = cause === undefined ? undefined : { cause, explanation, isUnreached: UNREACHED.has(cause) };
      telemetry.providerChecked(access.provider.id, access.source, failure);
    } catch (error) {
      telemetry.warn('a credential could not be checked', { variable: access.source, error: errorText(error) });
    }
  }
}

interface StartCheckDeps {
  readonly transport: Transport;
  readonly telemetry: Pick<Telemetry, 'providerChecked' | 'warn'>;
  /** Aborted when the product stops. */
  readonly stopping: AbortSignal;
}

async function ask(
  transport: Transport,
  { provider, credential }: Access,
  request: OutboundRequest,
  totalTimeoutMs: number,
): Promise<AttemptCause | undefined> {
  const { signal } = new AbortController();
  const secret = credential?.secret;
  try {
    const response = await transport.send(request, {
      signal,
      share: '',
      room: () => undefined,
      secret,
      totalTimeoutMs,
    });
    if (response.kind === 'streamed') throw new Error('a stream came to a request for none');
    if (response.status <= 299) return undefined;
    return causeOf(provider.adapter.parseError(response, secret));
  } catch (error) {
    if (error instanceof TransportError) return causeOf(fromTransportError(error));
    throw error;
  }
}
