import { InvalidArgumentError } from 'commander';
import { listCustomModels } from '../admin/providers/custom-models.ts';
import { listCustomProviders } from '../admin/providers/custom-providers.ts';
import { listProviderKeys } from '../admin/providers/provider-keys.ts';
import { formatUsdPerMillion, parseUsd } from '../domain/limits.ts';
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
} from '../generated/types.ts';
import { everyPage } from './record-references.ts';
import { type Cell, extra, type Format, free, print, printJson, printTable, warn } from './terminal/output.ts';
import type { Workspace } from './workspace.ts';

/** All provider keys: those of one provider together, in the order in which they are tried. */
export const everyProviderKey = ({ db, actor }: Workspace): ProviderKeyRecord[] =>
  everyPage((page) => {
    const { providerKeys: items, nextCursor } = listProviderKeys(db, actor, page);
    return { items, nextCursor };
  }).sort((a, b) => (a.provider === b.provider ? a.position - b.position : a.provider < b.provider ? -1 : 1));

/** All custom providers, newest first. */
export const everyCustomProvider = ({ db, actor }: Workspace): CustomProviderRecord[] =>
  everyPage((page) => {
    const { customProviders: items, nextCursor } = listCustomProviders(db, actor, page);
    return { items, nextCursor };
  });

/** All custom models, newest first; of one provider when its id is given. */
export const everyCustomModel = ({ db, actor }: Workspace, customProviderId?: string): CustomModelRecord[] =>
  everyPage((page) => {
    const { customModels: items, nextCursor } = listCustomModels(db, actor, { ...page, customProviderId });
    return { items, nextCursor };
  });

/** The id of the one item that is meant. */
function meant<T extends { readonly id: string }>(
  items: readonly T[],
  nameOf: (item: T) => string,
  reference: string,
  what: string,
): string {
  const found = items.filter((item) => item.id === reference || nameOf(item) === reference);
  const [item] = found;
  if (item === undefined) throw new Error(`There is no ${what} "${reference}".`);
  if (found.length > 1) throw new Error(`"${reference}" matches several: ${found.map(({ id }) => id).join(', ')}.`);
  return item.id;
}

/** By id or label. */
export const providerKeyId = (workspace: Workspace, reference: string): string =>
  meant(everyProviderKey(workspace), ({ label }) => label, reference, 'provider key with the id or label');

/** By id or name, also written `custom:<name>`. */
export const customProviderId = (workspace: Workspace, reference: string): string =>
  meant(
    everyCustomProvider(workspace),
    ({ name }) => name,
    reference.replace(/^custom:/, ''),
    'custom provider with the id or name',
  );

/** By id or `<custom provider>/<model>`. */
export const customModelId = (workspace: Workspace, reference: string): string =>
  meant(everyCustomModel(workspace), ({ name }) => name, reference, 'custom model with the id or name');

/** Capabilities of a custom model as the command line names them, with their fields. */
const CAPABILITIES = [
  { name: 'streaming', field: 'streaming' },
  { name: 'vision', field: 'vision' },
  { name: 'tools', field: 'tools' },
  { name: 'parallel-tool-calls', field: 'parallelToolCalls' },
  { name: 'reasoning', field: 'reasoning' },
  { name: 'json-output', field: 'jsonOutput' },
  { name: 'structured-outputs', field: 'structuredOutputs' },
] as const;

/** Every capability: true if the comma list names it. `none` makes all false. @throws InvalidArgumentError for an unknown name */
export function parseCapabilities(text: string): Record<string, boolean> {
  const wanted = text === 'none' ? [] : text.split(',').map((item) => item.trim());
  const unknown = wanted.find((item) => !CAPABILITIES.some(({ name }) => name === item));
  if (unknown !== undefined) {
    throw new InvalidArgumentError(
      `It must be "none" or a comma list of ${CAPABILITIES.map(({ name }) => name).join(', ')}.`,
    );
  }
  return Object.fromEntries(CAPABILITIES.map(({ name, field }) => [field, wanted.includes(name)]));
}

const statusCell = (text: 'active' | 'inactive'): Cell => ({ text, colour: text === 'active' ? 'green' : 'yellow' });

const KEY_TITLES = [
  ...[free('LABEL'), 'ID', free('PROVIDER'), 'SECRET', free('PROJECT'), 'STATUS'],
  ...extra('POSITION', 'BASE URL', 'PROJECT ID'),
];

const keyRow = (key: ProviderKeyRecord): Cell[] => [
  { text: key.label },
  { text: key.id },
  { text: key.provider },
  { text: key.maskedToken },
  { text: key.projectId === null ? 'all' : (key.projectName ?? key.projectId) },
  statusCell(key.status),
  { text: String(key.position) },
  { text: key.baseUrl ?? '-' },
  { text: key.projectId ?? 'all' },
];

export function showProviderKeys(providerKeys: readonly ProviderKeyRecord[], format: Format): void {
  if (format.json) printJson({ providerKeys, nextCursor: null });
  else printTable(KEY_TITLES, providerKeys.map(keyRow), 'There are no provider keys.', format);
}

export function showProviderKey(answer: ProviderKeyAnswer, { json }: Format): void {
  if (json) printJson(answer);
  else printTable(KEY_TITLES, [keyRow(answer.providerKey)], '', { wide: true });
}

const PROVIDER_TITLES = [free('NAME'), 'ID', 'API', free('BASE URL'), 'CREDENTIAL', ...extra('OWN FIELDS')];

const providerRow = (provider: CustomProviderRecord): Cell[] => [
  { text: provider.name },
  { text: provider.id },
  { text: provider.wire },
  { text: provider.baseUrl },
  { text: provider.keyless ? 'none needed' : 'provider key' },
  { text: provider.fields.join(',') || '-' },
];

export function showCustomProviders(customProviders: readonly CustomProviderRecord[], format: Format): void {
  if (format.json) printJson({ customProviders, nextCursor: null });
  else printTable(PROVIDER_TITLES, customProviders.map(providerRow), 'There are no custom providers.', format);
}

export function showCustomProvider(answer: CustomProviderAnswer, { json }: Format): void {
  if (json) printJson(answer);
  else printTable(PROVIDER_TITLES, [providerRow(answer.customProvider)], '', { wide: true });
}

const MODEL_TITLES = [free('NAME'), 'ID', 'INPUT $/M', 'OUTPUT $/M', 'CONTEXT', 'STATUS', ...extra('SUPPORTS')];

/** USD per million tokens, as price lists have it. */
const perMillion = (price: string | null): string => (price === null ? '-' : formatUsdPerMillion(parseUsd(price)));

const modelRow = (model: CustomModelRecord): Cell[] => [
  { text: model.name },
  { text: model.id },
  { text: perMillion(model.pricing.prompt) },
  { text: perMillion(model.pricing.completion) },
  { text: model.contextLength === null ? '-' : String(model.contextLength) },
  statusCell(model.status),
  {
    text:
      CAPABILITIES.filter(({ field }) => model[field])
        .map(({ name }) => name)
        .join(',') || '-',
  },
];

export function showCustomModels(customModels: readonly CustomModelRecord[], format: Format): void {
  if (format.json) printJson({ customModels, nextCursor: null });
  else printTable(MODEL_TITLES, customModels.map(modelRow), 'There are no custom models.', format);
}

export function showCustomModel(answer: CustomModelAnswer, { json }: Format): void {
  if (json) printJson(answer);
  else printTable(MODEL_TITLES, [modelRow(answer.customModel)], '', { wide: true });
}

const TAG_TITLES = [free('TARGET'), 'ID', free('TAGS')];

const tagRow = ({ id, target, tags }: TagSetRecord): Cell[] => [
  { text: target },
  { text: id },
  { text: tags.join(', ') },
];

export function showTagSets(tagSets: readonly TagSetRecord[], format: Format): void {
  if (format.json) printJson({ tagSets, nextCursor: null });
  else printTable(TAG_TITLES, tagSets.map(tagRow), 'There are no tags of your own.', format);
}

export function showTagSet(answer: TagSetAnswer, { json }: Format): void {
  if (json) printJson(answer);
  else printTable(TAG_TITLES, [tagRow(answer.tagSet)], '', { wide: true });
}

const ALIAS_TITLES = ['ALIAS', free('OF'), free('MODELS')];

const aliasRow = ({ name, projectId, models, weights }: AliasRecord, projects: ReadonlyMap<string, string>): Cell[] => [
  { text: name },
  { text: projectId === null ? 'organization' : `project ${projects.get(projectId) ?? projectId}` },
  { text: models.map((model, at) => (weights === null ? model : `${model} (${weights[at]})`)).join(', ') },
];

/** @param projects names by ids */
export function showAliases(
  aliases: readonly AliasRecord[],
  projects: ReadonlyMap<string, string>,
  format: Format,
): void {
  if (format.json) printJson({ aliases, nextCursor: null });
  else {
    const rows = aliases.map((alias) => aliasRow(alias, projects));
    printTable(ALIAS_TITLES, rows, 'There are no aliases.', format);
  }
}

export function showAlias(answer: AliasAnswer, projects: ReadonlyMap<string, string>, { json }: Format): void {
  if (json) {
    printJson(answer);
    return;
  }
  printTable(ALIAS_TITLES, [aliasRow(answer.alias, projects)], '', { wide: true });
  for (const warning of answer.warnings) warn(`warning: ${warning}`);
}

export function showRemoved(deletion: Deletion, { json }: Format): void {
  if (json) printJson(deletion);
  else print(`Removed ${deletion.id}.`);
}
