import type { CatalogModel } from '../../catalog/catalog-file.ts';
import { modelList } from '../../catalog/model-list.ts';
import { KNOWN_PROVIDERS } from '../../config/upstreams.ts';
import { unnamedModels } from '../../core/auto.ts';
import { targetsOf } from '../../core/reach.ts';
import { formatUsdPerMillion, parseUsd } from '../../domain/limits.ts';
import type { Mapping } from '../../domain/model.ts';
import type { TagSet } from '../../domain/provider.ts';
import { systemClock } from '../../domain/time.ts';
import type { KnownProvider, Model } from '../../generated/types.ts';
import { counted, entryOf } from '../../lib/text.ts';
import { createPdp } from '../../policy/pdp.ts';
import { usableModels } from '../../workbench/world/holders.ts';
import { readWorld, type World } from '../../workbench/world/world.ts';
import { keyId } from '../record-references.ts';
import { type Cell, type Format, free, print, printJson, printTable } from '../terminal/output.ts';
import { type Environment, inWorkspace } from '../workspace.ts';
import { addressText } from './access-output.ts';
import { policyOf } from './policy-world.ts';

export interface ModelsOptions {
  readonly org?: string;
  readonly key?: string;
  readonly mapped?: true;
  readonly tags?: true;
  readonly wide?: true;
  readonly json?: true;
  readonly against?: 'env';
}

/** `portcullis models`. */
export async function runModels(
  env: Environment,
  { org, key, mapped, tags, json, wide, against }: ModelsOptions,
): Promise<void> {
  const { world, organizationId, stored, moderationModel } = await inWorkspace(env, 'read', org, (workspace) => {
    const { organizationId } = workspace.actor;
    const { installation } = workspace.served(against);
    const world = readWorld(workspace.db, installation, organizationId);
    const { moderation: moderationModel } = unnamedModels(
      { image: workspace.config.defaultImageModel, moderation: workspace.config.moderationModel },
      installation,
      workspace.now,
    );
    return {
      world,
      organizationId,
      moderationModel,
      stored: key === undefined ? undefined : world.keys.get(keyId(workspace, key)),
    };
  });
  if (key !== undefined && stored === undefined) throw new Error(`There is no key ${key}.`);
  const pdp = createPdp(policyOf(env));
  try {
    const isMapped = mapped === true || tags === true;
    const wanted = { organizationId, key: stored, moderationModel, isMapped };
    const { models, addresses } = usableModels(pdp, world, wanted);
    const options = { includeDeactivated: false, excludeDeprecated: false, noTraining: false, mapped: mapped === true };
    const list = modelList(models, world.catalog.providers(), options, systemClock.now());
    if (tags) showTags(models, world, { organizationId, wide });
    else if (json) printJson(list);
    else printModels(list.data, addresses, { wide });
  } finally {
    pdp.close();
  }
}

const MODEL_TITLES = [
  ...['MODEL', free('PROVIDERS'), 'INPUT', 'OUTPUT'],
  ...[free('OTHER PRICES'), 'CONTEXT', 'LONGEST ANSWER'],
];

function printModels(models: readonly Model[], addresses: readonly string[], format: Format): void {
  printTable(
    MODEL_TITLES,
    models.map(modelRow),
    'None: the rules permit no model whose provider has a credential.',
    format,
  );
  if (models.length === 0) return;
  print(`\n${counted(models.length, 'model')}; INPUT and OUTPUT in USD per million tokens.`);
  if (addressText(addresses) !== 'any') print(`Calls are permitted from ${addressText(addresses)}.`);
}

const perMillion = (usdPerToken: string | undefined): string =>
  usdPerToken === undefined ? 'unknown' : formatUsdPerMillion(parseUsd(usdPerToken));

const modelRow = ({ id, providers, pricing, context_length, max_output }: Model): Cell[] => [
  { text: id },
  { text: [...new Set(providers.map(({ providerId }) => providerId))].join(', ') },
  { text: perMillion(pricing.prompt) },
  { text: perMillion(pricing.completion) },
  { text: otherPrices(pricing) || '-' },
  { text: String(context_length ?? 'unknown') },
  { text: String(max_output ?? 'unknown') },
];

/** Prices for units other than the token, where they are not zero: `0.04 per image made`. */
function otherPrices({ per_image, image, request, web_search }: Model['pricing']): string {
  const units = [
    [per_image?.default, 'per image made'],
    [image, 'per image read'],
    [request, 'per request'],
    [web_search, 'per web search'],
  ] as const;
  return units
    .flatMap(([price, unit]) => (price === undefined || price === '0' ? [] : [`${price} ${unit}`]))
    .join(', ');
}

/** Fields of a provider by the names of the tags that state them. */
const FIELDS: Readonly<Record<string, NonNullable<KnownProvider['sources']>[number]['field']>> = {
  no_training: 'trainsOnData',
  region: 'region',
  retention: 'retention',
};

/** A line for each tag of a model at a provider, with who says so. */
function showTags(
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
