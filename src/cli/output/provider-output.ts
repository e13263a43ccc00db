import { withName } from '../../domain/id.ts';
import { formatUsdPerMillion, parseUsd } from '../../domain/money.ts';
import type {
  AliasAnswer,
  AliasRecord,
  CustomModelAnswer,
  CustomModelRecord,
  CustomProviderAnswer,
  CustomProviderRecord,
  Deletion,
  ProviderKeyAnswer,
  ProviderKeyRecord,
  TagSetAnswer,
  TagSetRecord,
} from '../../generated/types.ts';
import { type Cell, print, printJson, printTable, warn } from '../terminal/output.ts';
import { CAPABILITIES } from './capabilities.ts';

interface Format {
  readonly json?: true;
}

const status = (text: 'active' | 'inactive'): Cell => ({ text, colour: text === 'active' ? 'green' : 'yellow' });

const KEY_TITLES = ['ID', 'PROVIDER', 'POSITION', 'LABEL', 'SECRET', 'PROJECT', 'BASE URL', 'STATUS'];

const keyRow = (key: ProviderKeyRecord): Cell[] => [
  { text: key.id },
  { text: key.provider },
  { text: String(key.position) },
  { text: key.label },
  { text: key.maskedToken },
  { text: key.projectId === null ? 'all' : withName(key.projectId, key.projectName) },
  { text: key.baseUrl ?? '-' },
  status(key.status),
];

export function showProviderKeys(providerKeys: readonly ProviderKeyRecord[], { json }: Format): void {
  if (json) printJson({ providerKeys, nextCursor: null });
  else printTable(KEY_TITLES, providerKeys.map(keyRow), 'There are no provider keys.');
}

export function showProviderKey(answer: ProviderKeyAnswer, { json }: Format): void {
  if (json) printJson(answer);
  else printTable(KEY_TITLES, [keyRow(answer.providerKey)], '');
}

const PROVIDER_TITLES = ['ID', 'NAME', 'API', 'BASE URL', 'CREDENTIAL', 'OWN FIELDS'];

const providerRow = (provider: CustomProviderRecord): Cell[] => [
  { text: provider.id },
  { text: provider.name },
  { text: provider.wire },
  { text: provider.baseUrl },
  { text: provider.keyless ? 'none needed' : 'provider key' },
  { text: provider.fields.join(',') || '-' },
];

export function showCustomProviders(customProviders: readonly CustomProviderRecord[], { json }: Format): void {
  if (json) printJson({ customProviders, nextCursor: null });
  else printTable(PROVIDER_TITLES, customProviders.map(providerRow), 'There are no custom providers.');
}

export function showCustomProvider(answer: CustomProviderAnswer, { json }: Format): void {
  if (json) printJson(answer);
  else printTable(PROVIDER_TITLES, [providerRow(answer.customProvider)], '');
}

const MODEL_TITLES = ['ID', 'NAME', 'INPUT $/M', 'OUTPUT $/M', 'CONTEXT', 'SUPPORTS', 'STATUS'];

/** USD per million tokens, as price lists have it. */
const perMillion = (price: string | null): string => (price === null ? '-' : formatUsdPerMillion(parseUsd(price)));

const modelRow = (model: CustomModelRecord): Cell[] => [
  { text: model.id },
  { text: model.name },
  { text: perMillion(model.pricing.prompt) },
  { text: perMillion(model.pricing.completion) },
  { text: model.contextLength === null ? '-' : String(model.contextLength) },
  {
    text:
      CAPABILITIES.filter(({ field }) => model[field])
        .map(({ name }) => name)
        .join(',') || '-',
  },
  status(model.status),
];

export function showCustomModels(customModels: readonly CustomModelRecord[], { json }: Format): void {
  if (json) printJson({ customModels, nextCursor: null });
  else printTable(MODEL_TITLES, customModels.map(modelRow), 'There are no custom models.');
}

export function showCustomModel(answer: CustomModelAnswer, { json }: Format): void {
  if (json) printJson(answer);
  else printTable(MODEL_TITLES, [modelRow(answer.customModel)], '');
}

const TAG_TITLES = ['ID', 'TARGET', 'TAGS'];

const tagRow = ({ id, target, tags }: TagSetRecord): Cell[] => [
  { text: id },
  { text: target },
  { text: tags.join(', ') },
];

export function showTagSets(tagSets: readonly TagSetRecord[], { json }: Format): void {
  if (json) printJson({ tagSets, nextCursor: null });
  else printTable(TAG_TITLES, tagSets.map(tagRow), 'There are no tags of your own.');
}

export function showTagSet(answer: TagSetAnswer, { json }: Format): void {
  if (json) printJson(answer);
  else printTable(TAG_TITLES, [tagRow(answer.tagSet)], '');
}

const ALIAS_TITLES = ['ALIAS', 'OF', 'MODELS'];

const aliasRow = ({ name, projectId, models, weights }: AliasRecord, projects: ReadonlyMap<string, string>): Cell[] => [
  { text: name },
  { text: projectId === null ? 'organization' : `project ${projects.get(projectId) ?? projectId}` },
  { text: models.map((model, at) => (weights === null ? model : `${model} (${weights[at]})`)).join(', ') },
];

/** @param projects names by ids */
export function showAliases(
  aliases: readonly AliasRecord[],
  projects: ReadonlyMap<string, string>,
  { json }: Format,
): void {
  if (json) printJson({ aliases, nextCursor: null });
  else {
    const rows = aliases.map((alias) => aliasRow(alias, projects));
    printTable(ALIAS_TITLES, rows, 'There are no aliases.');
  }
}

export function showAlias(answer: AliasAnswer, projects: ReadonlyMap<string, string>, { json }: Format): void {
  if (json) {
    printJson(answer);
    return;
  }
  printTable(ALIAS_TITLES, [aliasRow(answer.alias, projects)], '');
  for (const warning of answer.warnings) warn(`warning: ${warning}`);
}

export function showRemoved(deletion: Deletion, { json }: Format): void {
  if (json) printJson(deletion);
  else print(`Removed ${deletion.id}.`);
}
