import { KNOWN_PROVIDERS, type ServiceProvider, type UpstreamConfig } from '../config/upstreams.ts';
import { hashSecret, type Pepper } from '../domain/id.ts';
import { type CustomProvider, SANDBOX, type WireFormat } from '../domain/provider.ts';
import type { AddressPolicy } from '../net/address-policy.ts';
import { anthropicAdapter } from './anthropic/anthropic.ts';
import { googleAdapter } from './google/google.ts';
import { openAiAdapterFor } from './openai/openai.ts';
import type { Sandbox } from './sandbox/sandbox.ts';
import type { Adapter, BaseUrl } from './wire/adapter.ts';

/** Someone who serves models: how to talk to it, and where. */
export interface Provider {
  /** Id by which mappings refer to it. */
  readonly id: string;
  readonly wire: WireFormat;
  readonly adapter: Adapter;
  readonly base: BaseUrl;
  /** Providers that the operator names are trusted; addresses from the database must be public. */
  readonly addresses: AddressPolicy;
  /** Request fields beyond its wire format's that the operator, or who added the provider, lets through. */
  readonly namedFields: ReadonlySet<string>;
}

/** Credential of a call to a provider. */
export interface Credential {
  /** `service`: the operator's; `byok`: the customer's own. */
  readonly source: 'service' | 'byok';
  /** Absent: the upstream asks for none. Never logged, never answered. */
  readonly secret?: string;
  /** Fingerprint of the secret for `metadata.routing`; present exactly when there is one that someone configured. */
  readonly apiKeyHash?: string;
  readonly providerKeyId?: string;
  readonly providerKeyLabel?: string;
}

/** The providers that the process knows from its configuration and its catalogue, and how to make others. */
export interface Providers {
  /** A provider of the catalogue, an upstream of the environment, or the sandbox. */
  find(providerId: string): Provider | undefined;
  /** The operator's own credential; undefined: there is none, and only customers' own keys can call the provider. */
  serviceCredential(providerId: string): Credential | undefined;
  /** The operator has a credential for another provider than the sandbox, or one that asks for none. */
  readonly servesOthers: boolean;
  /** Takes other credentials and addresses of the same providers. */
  renew(configured: Pick<ProvidersOptions, 'upstreams' | 'serviceProviders'>): void;
  /** Another number after each `renew`. */
  revision(): number;
  /** A provider of an organization's own. */
  custom(provider: CustomProvider): Provider;
  /** A customer's own credential. */
  byok(providerKeyId: string, providerKeyLabel: string, secret: string): Credential;
}

export interface ProvidersOptions {
  /** The running sandbox; absent when it is off. */
  readonly sandbox?: Pick<Sandbox, 'origin' | 'key'> | undefined;
  readonly upstreams: readonly UpstreamConfig[];
  readonly serviceProviders: readonly ServiceProvider[];
  readonly pepper: Pepper;
}

/** 16 hex digits of the secret's HMAC: tells two credentials apart and gives neither away. */
export const apiKeyHash = (secret: string, pepper: Pepper): string => hashSecret(secret, pepper).slice(0, 16);

/** @throws TypeError for text that is no URL */
export function parseBaseUrl(text: string): BaseUrl {
  const url = new URL(text);
  return { origin: url.origin, path: url.pathname.replace(/\/+$/, '') };
}

/** Returns a provider's adapter; a provider without a dialect of its own is not known by any id. */
export function adapterFor(wire: WireFormat, providerId: string): Adapter {
  switch (wire) {
    case 'anthropic':
      return anthropicAdapter;
    case 'google':
      return googleAdapter;
    case 'openai':
      return openAiAdapterFor(providerId);
  }
}

/** Facts about one provider before any organization is known. */
interface Known {
  readonly provider: Provider;
  readonly credential: Credential | undefined;
}

export function createProviders(options: ProvidersOptions): Providers {
  const { pepper, sandbox } = options;
  let revision = 0;
  const fingerprint = (secret: string) => ({ secret, apiKeyHash: apiKeyHash(secret, pepper) });
  const known = new Map<string, Known>();
  const add = (
    id: string,
    wire: WireFormat,
    baseUrl: string,
    credential: Credential | undefined,
    fields: readonly string[] = [],
  ): void => {
    const adapter = adapterFor(wire, id);
    const base = parseBaseUrl(baseUrl);
    const namedFields = new Set(fields);
    known.set(id, { provider: { id, wire, adapter, base, addresses: 'trusted', namedFields }, credential });
  };
  const service = (secret: string | undefined): Credential =>
    secret === undefined ? { source: 'service' } : { source: 'service', ...fingerprint(secret) };

  function take({ upstreams, serviceProviders }: Pick<ProvidersOptions, 'upstreams' | 'serviceProviders'>): void {
    const byId = new Map(serviceProviders.map((each) => [each.id, each]));
    for (const { id, wire, baseUrl } of KNOWN_PROVIDERS) {
      const configured = byId.get(id);
      const credential = configured?.apiKey === undefined ? undefined : service(configured.apiKey);
      add(id, wire, configured?.baseUrl ?? baseUrl, credential, configured?.fields);
    }
    for (const { name, baseUrl, apiKey, fields } of upstreams) add(name, 'openai', baseUrl, service(apiKey), fields);
    revision += 1;
  }
  take(options);
  // Its key is no credential of anyone's, so that it has no fingerprint.
  if (sandbox !== undefined) add(SANDBOX, 'openai', `${sandbox.origin}/v1`, { source: 'service', secret: sandbox.key });

  return {
    servesOthers: [...known].some(([id, { credential }]) => id !== SANDBOX && credential !== undefined),
    renew: take,
    revision: () => revision,
    find: (providerId) => known.get(providerId)?.provider,
    serviceCredential: (providerId) => known.get(providerId)?.credential,
    custom: ({ name, wire, baseUrl, fields }) => ({
      id: name,
      wire,
      // A custom provider that bears the name of a known one is none: no dialect of another's is spoken to it.
      adapter: adapterFor(wire, 'custom'),
      base: parseBaseUrl(baseUrl),
      addresses: 'public',
      namedFields: new Set(fields),
    }),
    byok: (providerKeyId, providerKeyLabel, secret) => ({
      source: 'byok',
      ...fingerprint(secret),
      providerKeyId,
      providerKeyLabel,
    }),
  };
}
