import type { CatalogModel } from '../../catalog/catalog-model.ts';
import { KNOWN_PROVIDERS } from '../../config/known-providers.ts';
import { targetsOf } from '../../core/models/own-tags.ts';
import type { Mapping } from '../../domain/model.ts';
import type { TagSet } from '../../domain/provider.ts';
import type { KnownProvider } from '../../generated/types.ts';
import { entryOf } from '../../lib/text.ts';
import type { World } from '../../workbench/world/world.ts';
import { type Format, free, printTable } from '../terminal/output.ts';

/** Fields of a provider by the names of the tags that state them. */
const FIELDS: Readonly<Record<string, NonNullable<KnownProvider['sources']>[number]['field']>> = {
  no_training: 'trainsOnData',
  region: 'region',
  retention: 'retention',
};

/** A line for each tag of a model at a provider, with who says so. */
export function showTags(
  models: readonly CatalogModel[],
  world: World,
  { organizationId, ...format }: Format & { readonly organizationId: string },
): void {
  const own = world.organizations.get(organizationId)?.providers?.tagSets ?? [];
  const rows = models.flatMap(({ mappings }) =>
    mappings.flatMap((mapping) =>
      mapping.tags.map((tag) => [
        { text: mapping.id },
        { text: tag },
        { text: sourceOf(tag, mapping, own, world.catalog.date) },
      ]),
    ),
  );
  printTable(['MODEL', 'TAG', free('SOURCE')], rows, 'None: of no model that may be used is anything known.', format);
}

function sourceOf(tag: string, mapping: Mapping, own: readonly TagSet[], date: string): string {
  const targets = targetsOf(mapping);
  const set = own.find(({ target, tags }) => targets.includes(target) && tags.includes(tag));
  if (set !== undefined) return `your own, on ${set.target}`;
  const { sources = [] } = KNOWN_PROVIDERS.find(({ id }) => id === mapping.providerId) ?? {};
  const field = entryOf(FIELDS, tag.split(':', 1).join());
  const stated = sources.find((each) => each.field === field);
  return stated === undefined ? `the catalogue of ${date}` : `${stated.source} (${stated.date})`;
}
