import { hashSecret, type Pepper } from '../domain/secret.ts';
import type { UpstreamConfig } from '../domain/upstream-config.ts';
import type { AddressPolicy } from '../net/address-policy.ts';
import type { Adapter, BaseUrl } from './adapter.ts';
import { openAiAdapter } from './openai.ts';

/** Somebody who serves models: how to talk to it, and where. */
export interface Provider {
  readonly id: string;
  readonly adapter: Adapter;
  readonly base: BaseUrl;
  readonly addresses: AddressPolicy;
}

/** What a call to a provider authenticates with. */
export interface Credential {
  /** `service`: the operator's; `byok`: the customer's own. */
  readonly source: 'service' | 'byok';
  /** Absent: the upstream asks for none. Never logged, never answered. */
  readonly secret?: string;
  /** Fingerprint of the secret for `metadata.routing`; present exactly when there is one. */
  readonly apiKeyHash?: string;
  readonly providerKeyId?: string;
  readonly providerKeyLabel?: string;
}

export interface Providers {
  find(providerId: string): Provider | undefined;
  /** What this project's calls to the provider use; absent when it has nothing usable. */
  credential(providerId: string, projectId: string): Credential | undefined;
  hasCredential(providerId: string, projectId: string): boolean;
}

export interface ProvidersOptions {
  /** Origin of the running sandbox; absent when it is off. */
  readonly sandboxOrigin?: string | undefined;
  readonly upstreams: readonly UpstreamConfig[];
  readonly pepper: Pepper;
}

/** 16 hex digits of the secret's HMAC: tells two credentials apart and gives neither away. */
export const apiKeyHash = (secret: string, pepper: Pepper): string => hashSecret(secret, pepper).slice(0, 16);

/** @throws TypeError for text that is no URL */
export function parseBaseUrl(text: string): BaseUrl {
  const url = new URL(text);
  return { origin: url.origin, path: url.pathname.replace(/\/+$/, '') };
}

function serviceCredential(secret: string | undefined, pepper: Pepper): Credential {
  return secret === undefined
    ? { source: 'service' }
    : { source: 'service', secret, apiKeyHash: apiKeyHash(secret, pepper) };
}

/** The providers that the process knows from its configuration: the sandbox and the environment's upstreams. */
export function createProviders(options: ProvidersOptions): Providers {
  const known = new Map<string, { provider: Provider; credential: Credential }>();
  const add = (id: string, baseUrl: string, credential: Credential): void => {
    const provider: Provider = { id, adapter: openAiAdapter, base: parseBaseUrl(baseUrl), addresses: 'trusted' };
    known.set(id, { provider, credential });
  };
  if (options.sandboxOrigin !== undefined) add('sandbox', `${options.sandboxOrigin}/v1`, { source: 'service' });
  for (const { name, baseUrl, apiKey } of options.upstreams)
    add(name, baseUrl, serviceCredential(apiKey, options.pepper));
  return {
    find: (providerId) => known.get(providerId)?.provider,
    credential: (providerId) => known.get(providerId)?.credential,
    hasCredential: (providerId) => known.has(providerId),
  };
}
