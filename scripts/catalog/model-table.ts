import { readFileSync } from 'node:fs';
import { PROVIDER_IDS } from '../../src/config/upstreams.ts';
import { Entry } from './entry.ts';

/** A line of the reviewed table: one model, and by which id each provider serves it. */
export interface TableModel {
  /** Canonical id. */
  readonly id: string;
  readonly name: string;
  /** Id of its maker. */
  readonly maker: string;
  /** Dated ids and `-latest` names that mean this model. */
  readonly aliases: readonly string[];
  /** `YYYY-MM-DD`; the packages know it of older models. */
  readonly created: string | undefined;
  /** `YYYY-MM-DD`: when the model entered the catalogue; for models of which nobody says when they were released. */
  readonly entered: string | undefined;
  /** The provider's own id of the model, by our provider id. */
  readonly at: ReadonlyMap<string, string>;
}

const MAKERS: Readonly<Record<string, string>> = {
  amazon: 'Amazon',
  anthropic: 'Anthropic',
  cohere: 'Cohere',
  deepseek: 'DeepSeek',
  google: 'Google',
  meta: 'Meta',
  microsoft: 'Microsoft',
  minimax: 'MiniMax',
  mistral: 'Mistral AI',
  moonshotai: 'Moonshot AI',
  nousresearch: 'Nous Research',
  nvidia: 'NVIDIA',
  openai: 'OpenAI',
  perplexity: 'Perplexity',
  qwen: 'Alibaba',
  xai: 'xAI',
  zai: 'Z.ai',
};

/** @throws Error for a maker that has no name yet */
export function makerName(maker: string): string {
  const name = MAKERS[maker];
  if (name === undefined) throw new Error(`maker ${maker} has no name in scripts/catalog/model-table.ts`);
  return name;
}

/** The table of `src/catalog/data/models.json`, in its order. @throws Error that names the wrong place */
export function readModelTable(): TableModel[] {
  const file = new URL('../../src/catalog/data/models.json', import.meta.url);
  return parseModelTable(JSON.parse(readFileSync(file, 'utf8')));
}

/** Models by maker and canonical id. @throws Error that names the wrong place */
export function parseModelTable(table: unknown): TableModel[] {
  const makers = new Entry(table, '/models.json');
  return makers.keys().flatMap((maker) => {
    const models = makers.entry(maker);
    return models.keys().map((id) => parseModel(id, maker, models.entry(id)));
  });
}

function parseModel(id: string, maker: string, entry: Entry): TableModel {
  const at = entry.entry('at');
  return {
    id,
    maker,
    name: entry.text('name'),
    aliases: entry.optionalTexts('aliases') ?? [],
    created: entry.optionalText('created'),
    entered: entry.optionalText('entered'),
    at: new Map(at.keys().map((provider) => [knownProvider(provider, at.placeOf(provider)), at.text(provider)])),
  };
}

function knownProvider(id: string, place: string): string {
  if (!PROVIDER_IDS.includes(id)) throw new Error(`unknown provider at ${place}`);
  return id;
}
