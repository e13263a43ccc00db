import { readFileSync } from 'node:fs';
import { each, perMillion, scaled } from './decimal.ts';
import { dataFault, Entry } from './entry.ts';
import type { PriceList, TierList } from './price-list.ts';
import { CAPABILITIES, MODALITIES, PRICE_NAMES, type PriceName, REASONING_EFFORTS, STABILITIES } from './vocabulary.ts';

export type Capability = (typeof CAPABILITIES)[number];

/** What a fact says of the mappings that it is about; absent fields say nothing. */
export interface Statement {
  readonly contextLength?: number | undefined;
  readonly maxOutput?: number | undefined;
  readonly minCacheableTokens?: number | undefined;
  readonly input?: readonly string[] | undefined;
  readonly output?: readonly string[] | undefined;
  readonly can: readonly Capability[];
  readonly cannot: readonly Capability[];
  readonly efforts?: readonly string[] | undefined;
  /** What can be said in a request besides tools, reasoning and response format, which follow from the capabilities. */
  readonly parameters?: readonly string[] | undefined;
  readonly stability?: (typeof STABILITIES)[number] | undefined;
  readonly deprecatedAt?: string | undefined;
  readonly deactivatedAt?: string | undefined;
  readonly free?: boolean | undefined;
  readonly tokenizer?: string | undefined;
  readonly moderated?: boolean | undefined;
  readonly prices: PriceList;
  readonly tiers?: readonly TierList[] | undefined;
  /** Prices that a package states and that are none of tokens. */
  readonly unpriced: readonly PriceName[];
  /** Prices that are a multiple of the input price; in hundredths. They fill what is not known otherwise. */
  readonly timesPrompt: ReadonlyMap<PriceName, bigint>;
}

/** A fact from a public document. Facts are applied in their order: the last one wins. */
export interface Fact {
  /** Name of the document. */
  readonly source: string;
  /** When it was entered, `YYYY-MM-DD`. */
  readonly date: string;
  /** Public text said so on that day: the document itself, or one that cites it. Else it was entered from memory. */
  readonly checked: boolean;
  /** Whether it is about a mapping, by its id `provider/model`. */
  about(mappingId: string): boolean;
  readonly at: readonly string[];
  readonly says: Statement;
}

/** What is said of a package that knows models or prices. */
interface Package {
  /** The one that the facts were written for. */
  readonly version: string;
  /** When its data was taken, `YYYY-MM-DD`. */
  readonly date: string;
  /** Its ids of providers, by ours, where they differ. */
  readonly ids: ReadonlyMap<string, string>;
  /** Our ids of the providers of which it knows nothing. */
  readonly lacks: readonly string[];
}

export interface Overlay {
  readonly packages: ReadonlyMap<string, Package>;
  readonly facts: readonly Fact[];
}

/** A package's id of a provider; undefined where it is said to lack it. */
export function idIn({ packages }: Overlay, name: string, provider: string): string | undefined {
  const stated = packages.get(name);
  return stated?.lacks.includes(provider) ? undefined : (stated?.ids.get(provider) ?? provider);
}

/** When the youngest was taken of all that these mappings are made of, `YYYY-MM-DD`. @param ids `provider/model` */
export const youngest = ({ packages, facts }: Overlay, ids: readonly string[]): string =>
  [...packages.values(), ...facts.filter((fact) => ids.some(fact.about))]
    .map(({ date }) => date)
    .reduce((a, b) => (a > b ? a : b));

/** `src/catalog/data/overlay.json`. @throws Error that names the wrong place */
export function readOverlay(): Overlay {
  const file = new URL('../../src/catalog/data/overlay.json', import.meta.url);
  return parseOverlay(JSON.parse(readFileSync(file, 'utf8')));
}

/** @throws Error that names the wrong place */
export function parseOverlay(overlay: unknown): Overlay {
  const entry = new Entry(overlay, '/overlay.json');
  const packages = entry.entry('packages');
  return {
    packages: new Map(packages.keys().map((name) => [name, parsePackage(packages.entry(name))])),
    facts: entry.list('facts', parseFact),
  };
}

function parsePackage(entry: Entry): Package {
  const ids = entry.optionalEntry('ids');
  return {
    version: entry.text('version'),
    date: dateOf(entry, 'date'),
    ids: new Map(ids?.keys().map((provider) => [provider, ids.text(provider)])),
    lacks: entry.optionalTexts('lacks') ?? [],
  };
}

function dateOf(entry: Entry, key: string): string {
  const date = entry.text(key);
  if (!/^\d{4}-\d{2}-\d{2}$/.test(date) || Number.isNaN(Date.parse(date))) throw dataFault(entry.placeOf(key));
  return date;
}

function parseFact(entry: Entry): Fact {
  const at = entry.texts('at');
  const patterns = at.map((pattern) => new RegExp(`^${pattern.split('*').map(RegExp.escape).join('.*')}$`));
  return {
    source: entry.text('source'),
    date: dateOf(entry, 'date'),
    checked: entry.optionalFlag('checked') ?? false,
    at,
    about: (mappingId) => patterns.some((pattern) => pattern.test(mappingId)),
    says: parseStatement(entry.entry('says')),
  };
}

const STATED = [
  'contextLength',
  'maxOutput',
  'minCacheableTokens',
  'input',
  'output',
  'can',
  'cannot',
  'efforts',
  'parameters',
  'stability',
  'deprecatedAt',
  'deactivatedAt',
  'free',
  'tokenizer',
  'moderated',
  'perMillion',
  'each',
  'tiers',
  'timesPrompt',
  'unpriced',
];

function parseStatement(entry: Entry): Statement {
  const unknown = entry.keys().find((key) => !STATED.includes(key));
  if (unknown !== undefined) throw dataFault(entry.placeOf(unknown));
  return {
    contextLength: entry.optionalCount('contextLength'),
    maxOutput: entry.optionalCount('maxOutput'),
    minCacheableTokens: entry.optionalCount('minCacheableTokens'),
    input: entry.optionalTextsOf('input', MODALITIES),
    output: entry.optionalTextsOf('output', MODALITIES),
    can: entry.optionalTextsOf('can', CAPABILITIES) ?? [],
    cannot: entry.optionalTextsOf('cannot', CAPABILITIES) ?? [],
    efforts: entry.optionalTextsOf('efforts', REASONING_EFFORTS),
    parameters: entry.optionalTexts('parameters'),
    stability: entry.optionalOneOf('stability', STABILITIES),
    deprecatedAt: entry.optionalDateTime('deprecatedAt'),
    deactivatedAt: entry.optionalDateTime('deactivatedAt'),
    free: entry.optionalFlag('free'),
    tokenizer: entry.optionalText('tokenizer'),
    moderated: entry.optionalFlag('moderated'),
    prices: parsePrices(entry),
    tiers: entry.optionalList('tiers', (tier) => ({
      abovePromptTokens: tier.count('abovePromptTokens'),
      prices: parsePrices(tier),
    })),
    unpriced: entry.optionalTextsOf('unpriced', PRICE_NAMES) ?? [],
    timesPrompt: new Map(namedTexts(entry.optionalEntry('timesPrompt'), hundredths)),
  };
}

/** As published: `perMillion` in USD per million tokens, `each` in USD for one. */
const parsePrices = (entry: Entry): PriceList =>
  new Map([
    ...namedTexts(entry.optionalEntry('perMillion'), perMillion),
    ...namedTexts(entry.optionalEntry('each'), each),
  ]);

const hundredths = (text: string): bigint => scaled(text, 2);

function namedTexts<T>(entry: Entry | undefined, read: (text: string) => T): [PriceName, T][] {
  if (entry === undefined) return [];
  return entry.keys().map((key) => {
    const name = PRICE_NAMES.find((known) => known === key);
    if (name === undefined) throw dataFault(entry.placeOf(key));
    return [name, read(entry.text(key))];
  });
}
