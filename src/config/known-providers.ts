import { validateProviderList } from '../generated/validators.js';
import file from './providers.json' with { type: 'json' };

const list: unknown = file;
if (!validateProviderList(list)) {
  throw new Error(`src/config/providers.json is not valid at ${validateProviderList.errors?.[0]?.instancePath}`);
}

/**
 * The providers of the catalogue, in the order of `providers.json` (schemas/catalog/provider-list.json), and the dialect of every
 * other OpenAI-compatible server. A provider is added there; its models are `src/catalog/data/<id>.json`.
 */
export const { providers: KNOWN_PROVIDERS, otherServers: OTHER_SERVERS } = list;

export const PROVIDER_IDS: readonly string[] = KNOWN_PROVIDERS.map(({ id }) => id);
