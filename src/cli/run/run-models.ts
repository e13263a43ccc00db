import { modelList } from '../../catalog/list.ts';
import { unnamedModels } from '../../core/models/unnamed-models.ts';
import { formatUsdPerMillion, parseUsd } from '../../domain/money.ts';
import { systemClock } from '../../domain/time.ts';
import type { Model } from '../../generated/types.ts';
import { counted } from '../../lib/counted.ts';
import { createPdp } from '../../policy/pdp.ts';
import { usableModels } from '../../workbench/world/usable-models.ts';
import { readWorld } from '../../workbench/world/world.ts';
import { addressText } from '../output/access-output.ts';
import { showTags } from '../output/tag-output.ts';
import { type Cell, type Format, free, print, printJson, printTable } from '../terminal/output.ts';
import { policyOf } from './policy-world.ts';
import { keyId } from './references.ts';
import { type Environment, inWorkspace } from './workspace.ts';

export interface ModelsOptions {
  readonly org?: string;
  readonly key?: string;
  readonly mapped?: true;
  readonly tags?: true;
  readonly wide?: true;
  readonly json?: true;
}

/** `portcullis models`. */
export async function runModels(
  env: Environment,
  { org, key, mapped, tags, json, wide }: ModelsOptions,
): Promise<void> {
  const { world, organizationId, stored, moderationModel } = await inWorkspace(env, 'read', org, (workspace) => {
    const { organizationId } = workspace.actor;
    const world = readWorld(workspace.db, workspace.installation(), organizationId);
    const { moderation: moderationModel } = unnamedModels(
      { image: workspace.config.defaultImageModel, moderation: workspace.config.moderationModel },
      workspace.installation(),
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
    else show(list.data, addresses, { wide });
  } finally {
    pdp.close();
  }
}

const TITLES = [
  ...['MODEL', free('PROVIDERS'), 'INPUT', 'OUTPUT'],
  ...[free('OTHER PRICES'), 'CONTEXT', 'LONGEST ANSWER'],
];

function show(models: readonly Model[], addresses: readonly string[], format: Format): void {
  printTable(TITLES, models.map(row), 'None: the rules permit no model whose provider has a credential.', format);
  if (models.length === 0) return;
  print(`\n${counted(models.length, 'model')}; INPUT and OUTPUT in USD per million tokens.`);
  if (addressText(addresses) !== 'any') print(`Calls are permitted from ${addressText(addresses)}.`);
}

const perMillion = (usdPerToken: string | undefined): string =>
  usdPerToken === undefined ? 'unknown' : formatUsdPerMillion(parseUsd(usdPerToken));

const row = ({ id, providers, pricing, context_length, max_output }: Model): Cell[] => [
  { text: id },
  { text: [...new Set(providers.map(({ providerId }) => providerId))].join(', ') },
  { text: perMillion(pricing.prompt) },
  { text: perMillion(pricing.completion) },
  { text: otherPrices(pricing) || '-' },
  { text: String(context_length ?? 'unknown') },
  { text: String(max_output ?? 'unknown') },
];

/** What is charged by another unit than the token, where it costs something: `0.04 per image made`. */
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
