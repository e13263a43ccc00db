import type { ProviderDefinition } from '../domain/provider.ts';
import { readDataFile } from './data-files.ts';

/** The providers of the catalogue, as far as calling them goes, in the order of `data/providers.json`. */
export function providerDefinitions(): readonly ProviderDefinition[] {
  return readDataFile('providers').providers.flatMap(({ id, wire, baseUrl }) =>
    wire === undefined || baseUrl === undefined ? [] : [{ id, wire, baseUrl }],
  );
}
