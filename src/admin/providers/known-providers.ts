import { isIP } from 'node:net';
import type { Catalog } from '../../catalog/catalog.ts';
import { apiKeyVariable, type ServiceConfig } from '../../config/upstreams.ts';
import { type Endpoint, endpointOfUrl } from '../../domain/address.ts';
import { invalidRequest } from '../../domain/errors.ts';
import { counted, withoutFinalSlashes } from '../../lib/text.ts';
import { isPublicAddress } from '../../net/address-policy.ts';
import type { Database } from '../../store/db/database.ts';
import { findCustomProvider } from '../../store/providers/custom-provider-records.ts';
import { countActiveProviderKeys, countKeylessProviders } from '../../store/providers/provider-key-records.ts';

/** The providers that are there for everyone: those of the catalogue, of the environment, and the sandbox. */
export type KnownProviders = Pick<Catalog, 'providers'>;

const isKnown = (wanted: string, catalog: KnownProviders): boolean =>
  catalog.providers().some(({ id }) => id === wanted);

/** In a rule `custom` means all custom providers; `sandbox` is built in, also where it is off. */
const RESERVED = ['custom', 'sandbox'];

/** 400 for a name that is not free for a new custom provider of the organization. */
export function checkNameIsFree(db: Database, organizationId: string, name: string, catalog: KnownProviders): void {
  const isTaken =
    RESERVED.includes(name) || isKnown(name, catalog) || findCustomProvider(db, organizationId, name) !== undefined;
  if (isTaken) throw invalidRequest(`The provider name "${name}" is taken.`, '/name');
}

/** 400 unless it is the id of a known provider, or `custom:<name>` of a custom provider of the organization. */
export function checkIsProvider(db: Database, organizationId: string, provider: string, catalog: KnownProviders): void {
  const [, name] = /^custom:(.*)$/s.exec(provider) ?? [];
  if (name !== undefined) {
    if (findCustomProvider(db, organizationId, name) !== undefined) return;
    throw invalidRequest(`"${provider}" is not a custom provider of the organization.`, '/provider');
  }
  if (isKnown(provider, catalog)) return;
  throw invalidRequest(
    `"${provider}" is not a provider of the catalogue; a custom provider is written "custom:<name>".`,
    '/provider',
  );
}

/** A provider that can be called, and where its credential comes from, in words. */
export interface ActiveProvider {
  readonly name: string;
  readonly credential: string;
}

/**
 * Every provider that someone can call, by name, for the output of a start. The organizations' custom providers, which may be many,
 * are counted in one entry.
 */
export function listActiveProviders(db: Database, config: ServiceConfig): ActiveProvider[] {
  const sources = new Map<string, string[]>();
  const add = (name: string, source: string): void => void sources.set(name, [...(sources.get(name) ?? []), source]);
  if (config.sandbox) add('sandbox', 'built in');
  for (const { name, apiKey } of config.upstreams) {
    add(name, apiKey === undefined ? 'no credential needed' : apiKeyVariable(name));
  }
  for (const { id, apiKey } of config.serviceProviders) {
    if (apiKey !== undefined) add(id, `${id.toUpperCase()}_API_KEY`);
  }
  const [custom = [], others = []] = [true, false].map((wanted) =>
    countActiveProviderKeys(db).filter(({ providerId }) => providerId.startsWith('custom:') === wanted),
  );
  for (const { providerId, count } of others) add(providerId, counted(count, 'provider key'));
  const keys = custom.reduce((sum, { count }) => sum + count, 0);
  const keyless = countKeylessProviders(db);
  if (keys > 0) add('custom providers', counted(keys, 'provider key'));
  if (keyless > 0) add('custom providers', `${keyless} without a credential`);
  return [...sources]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, from]) => ({ name, credential: from.join(', ') }));
}

/** A name that means this machine wherever it is looked up. */
const LOCAL_NAME = /(^|\.)localhost\.?$/;

/**
 * A base URL as it is stored: without a final slash. 400 for anything but an http or https URL without user, query and
 * fragment, and for a literal private address that is not opened. What a name leads to is judged when a connection is made.
 */
export function readBaseUrl(text: string, param: string, opened: readonly Endpoint[]): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  // The text, too: a URL drops an empty query or user, and what stands around it.
  if (url === undefined || !/^https?:\/\/[^\s\\?#]+$/i.test(text) || url.username !== '' || url.password !== '') {
    throw invalidRequest('A base URL must be an http or https URL without user, query and fragment.', param);
  }
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  const isPrivate = LOCAL_NAME.test(host) || (isIP(host) !== 0 && !isPublicAddress(host));
  const endpoint = endpointOfUrl(url);
  if (isPrivate && !opened.includes(endpoint)) {
    throw invalidRequest(
      `The address of the base URL is private: it can be used when ALLOW_PRIVATE_UPSTREAMS names ${endpoint}.`,
      param,
    );
  }
  return withoutFinalSlashes(url.href);
}

/** Whether a secret that is sent to the one would go to the same server at the other. */
export const isSameServer = (one: string, other: string): boolean => new URL(one).origin === new URL(other).origin;
