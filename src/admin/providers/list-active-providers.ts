import { apiKeyVariable, type ServiceConfig } from '../../config/upstreams.ts';
import { counted } from '../../lib/text.ts';
import type { Database } from '../../store/db/database.ts';
import { countActiveProviderKeys, countKeylessProviders } from '../../store/providers/provider-key-records.ts';

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
