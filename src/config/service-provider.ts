import { readUrl } from './config-value.ts';
import { PROVIDER_IDS } from './known-providers.ts';
import { readRequestFields } from './request-field-names.ts';
import type { UpstreamConfig } from './upstream-config.ts';

/** What the environment says of a provider of the catalogue (src/config/README.md, "Providers of the catalogue"). */
export interface ServiceProvider {
  /** Provider id. */
  readonly id: string;
  /** The service's own credential; undefined: only the customers' own keys can call the provider. */
  readonly apiKey: string | undefined;
  /** In place of the provider's public address; without a final slash. */
  readonly baseUrl: string | undefined;
  /** Request fields that go to it beyond those of its table. */
  readonly fields: readonly string[];
}

/** The providers of which the environment says something, by id. @throws ConfigError */
export function readServiceProviders(variables: Readonly<Record<string, string | undefined>>): ServiceProvider[] {
  return PROVIDER_IDS.toSorted().flatMap((id) => {
    const prefix = id.toUpperCase();
    const apiKey = variables[`${prefix}_API_KEY`];
    const baseUrl = variables[`${prefix}_BASE_URL`];
    const fields = readRequestFields(`${prefix}_FIELDS`, variables);
    if (apiKey === undefined && baseUrl === undefined && fields.length === 0) return [];
    return { id, apiKey, baseUrl: baseUrl === undefined ? undefined : readUrl(`${prefix}_BASE_URL`, baseUrl), fields };
  });
}

/** What the environment says of providers. */
export interface ServiceConfig {
  readonly sandbox: boolean;
  readonly upstreams: readonly UpstreamConfig[];
  readonly serviceProviders: readonly ServiceProvider[];
}

/** Ids of the providers that can be called without a customer's own key: the operator has a credential, or none is asked for. */
export const servedProviders = ({ sandbox, upstreams, serviceProviders }: ServiceConfig): string[] => [
  ...(sandbox ? ['sandbox'] : []),
  ...upstreams.map(({ name }) => name),
  ...serviceProviders.filter(({ apiKey }) => apiKey !== undefined).map(({ id }) => id),
];
