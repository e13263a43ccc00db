import type { Catalog } from '../../catalog/catalog.ts';
import { formatAddress, parseRange } from '../../domain/address.ts';
import { byKind, type PolicyRule, type StoredPricingValue } from '../../domain/iam-rule.ts';
import { formatUsdPerMillion, parseUsdPerMillion } from '../../domain/limits.ts';
import type { Mapping } from '../../domain/model.ts';
import type { FixtureMapping } from '../../generated/types.ts';
import { intervalOf } from '../world/address-classes.ts';
import { activeMappings } from '../world/world.ts';
import {
  customSlice,
  EMPTY_SLICE,
  knownSlice,
  mergeSlices,
  modelSlice,
  ownSlice,
  PRICED,
  type Slice,
} from './generate-given.ts';

/** Requests on both sides of the border that a rule draws; they differ by model, or by address, but not by both. */
export interface Boundary extends Slice {
  readonly addresses: readonly string[];
}

/** Someone that no rule names, except by accident. */
const OTHER_PROVIDER = 'another-provider';
const SECOND_PROVIDER = 'a-second-provider';
const OTHER_MODEL = modelSlice('another-model', [OTHER_PROVIDER]);
const ONE_REQUEST: Slice = { ...OTHER_MODEL, names: OTHER_MODEL.names.slice(0, 1) };
const UNKNOWN_ADDRESS = 'unknown';
/** Entries of a rule whose cases make one fixture. */
const ENTRIES_AT_ONCE = 25;
/** Models of this installation's catalogue that a prefix is tried on. */
const KNOWN_AT_ONCE = 3;

/** Sources of cases: the catalogue, and the mappings of an organization's own models. */
export interface KnownModels {
  readonly catalog: Catalog;
  readonly custom: readonly Mapping[];
}

/** The borders of a rule, one part for each 25 entries of its list. Whether a model can be called does not matter to them. */
export const boundariesOf = (rule: PolicyRule, known: KnownModels): Boundary[] =>
  byKind(rule, {
    models: ({ models }) =>
      byModel(models, (entry) => (entry.endsWith('*') ? prefixCases(entry, known) : nameCases(entry, known))),
    providers: ({ providers }) => byModel(providers, (entry) => providerCases(entry, known)),
    pricing: (value) => [{ ...pricingCases(value), addresses: [UNKNOWN_ADDRESS] }],
    ip_cidrs: ({ ipCidrs }) =>
      chunks(ipCidrs).map((ranges) => ({ ...ONE_REQUEST, addresses: addressesAround(ranges) })),
    tags: ({ tags }) => byModel(tags, (entry) => tagCases(entry, known)),
  });

const byModel = (entries: readonly string[], casesOf: (entry: string) => Slice): Boundary[] =>
  chunks(entries).map((chunk) => ({
    ...mergeSlices([...chunk.map(casesOf), OTHER_MODEL]),
    addresses: [UNKNOWN_ADDRESS],
  }));

const chunks = (entries: readonly string[]): (readonly string[])[] =>
  Array.from({ length: Math.ceil(entries.length / ENTRIES_AT_ONCE) }, (_, index) =>
    entries.slice(index * ENTRIES_AT_ONCE, (index + 1) * ENTRIES_AT_ONCE),
  );

/** The model of a name by all its names, and the names one character longer and shorter. */
function nameCases(entry: string, { catalog, custom: own }: KnownModels): Slice {
  const ofOwn = ownSlice(own.filter(({ id }) => id === entry));
  const known = ofOwn.names.length > 0 ? ofOwn : knownSlice(catalog, entry);
  const [provider, model] = splitPinned(entry);
  const providers = provider === null ? [OTHER_PROVIDER, SECOND_PROVIDER] : [provider, strangerTo(provider)];
  const meant = known.names.length > 0 ? known : modelSlice(model, providers, [`alias-of-${model}`]);
  const custom = provider === null || known.names.length > 0 ? EMPTY_SLICE : customSlice(provider, `${model}-own`);
  return mergeSlices([
    meant,
    custom,
    ...[`${model}x`, model.slice(0, -1)].map((name) => modelSlice(name, providers.slice(0, 1))),
  ]);
}

/** Names that begin with the prefix, the prefix itself, and its neighbours, which do not begin with it. */
function prefixCases(entry: string, { catalog, custom }: KnownModels): Slice {
  const prefix = entry.slice(0, -1);
  const isMeant = ({ names }: Mapping): boolean => names.some((name) => name.startsWith(prefix));
  const known = new Set(
    activeMappings({ catalog })
      .filter(isMeant)
      .map(({ modelId }) => modelId),
  );
  const [provider, start] = splitPinned(prefix);
  const providers = provider === null ? [OTHER_PROVIDER] : [provider, `${provider}x`, strangerTo(provider)];
  const names = start === '' ? ['any-model'] : [start, `${start}x`, start.slice(0, -1), neighbourOf(start)];
  return mergeSlices([
    ...[...known].slice(0, KNOWN_AT_ONCE).map((id) => knownSlice(catalog, id)),
    ownSlice(custom.filter(isMeant).slice(0, KNOWN_AT_ONCE)),
    ...names.map((name) => modelSlice(name, providers)),
    // A prefix without `/` can be the beginning of a provider's name too.
    ...(provider === null && start !== '' ? [modelSlice('any-model', [start, `${start}x`])] : []),
  ]);
}

const strangerTo = (provider: string): string => (provider === OTHER_PROVIDER ? SECOND_PROVIDER : OTHER_PROVIDER);

/** Before and after the first `/`; null: there is none. */
function splitPinned(entry: string): [provider: string | null, model: string] {
  const slash = entry.indexOf('/');
  return slash < 0 ? [null, entry] : [entry.slice(0, slash), entry.slice(slash + 1)];
}

/** The text with another last character. */
const neighbourOf = (text: string): string => `${text.slice(0, -1)}${text.endsWith('z') ? 'y' : 'z'}`;

/** A model at the provider and at those with names one character longer and shorter; for custom providers, their models. */
function providerCases(entry: string, { catalog, custom: own }: KnownModels): Slice {
  const name = entry.startsWith('custom:') ? entry.slice('custom:'.length) : entry;
  const isMeant = ({ providerNames }: Mapping): boolean => providerNames.includes(entry);
  const known = activeMappings({ catalog }).filter(isMeant);
  const custom = entry === 'custom' ? ['some-custom', 'other-custom'] : [name, `${name}x`];
  return mergeSlices([
    ...known.slice(0, 1).map(({ id }) => knownSlice(catalog, id)),
    ownSlice(own.filter(isMeant).slice(0, 1)),
    modelSlice('any-model', [name, `${name}x`, name.slice(0, -1), strangerTo(name)]),
    ...custom.map((provider) => customSlice(provider, 'own-model')),
  ]);
}

const TAG = /^[a-z0-9][a-z0-9_.-]{0,62}(:[a-z0-9][a-z0-9_.-]{0,62})?$/;

/** A model with the tag and some with tags next to it, or with what a prefix begins; one of this installation; one without tags. */
function tagCases(entry: string, { catalog, custom }: KnownModels): Slice {
  const isPrefix = entry.endsWith('*');
  const tag = isPrefix ? entry.slice(0, -1) : entry;
  const isMeant = ({ tags }: Mapping): boolean => tags.some((each) => (isPrefix ? each.startsWith(tag) : each === tag));
  const known = activeMappings({ catalog }).filter(isMeant);
  const around = [tag, `${tag}x`, tag.slice(0, -1), neighbourOf(tag)].filter((each) => TAG.test(each));
  return mergeSlices([
    ...known.slice(0, 1).map(({ modelId }) => knownSlice(catalog, modelId)),
    ownSlice(custom.filter(isMeant).slice(0, 1)),
    ...around.map((each) => taggedSlice(`tagged-${each}`, [each])),
    taggedSlice('untagged', []),
  ]);
}

function taggedSlice(id: string, tags: readonly string[]): Slice {
  const tagged = tags.length === 0 ? PRICED : { ...PRICED, tags: [...tags] };
  return { ...modelSlice(id, [OTHER_PROVIDER], [], tagged), names: [id] };
}

/** For each stated maximum prices at it, just above and just below, and none; and what is on the border between the types. */
function pricingCases({ maxInputPrice = '1', maxOutputPrice = '1' }: StoredPricingValue): Slice {
  const within: FixtureMapping = { inputPricePerMillion: maxInputPrice, outputPricePerMillion: maxOutputPrice };
  return mergeSlices(
    [
      ...pricesAround(maxInputPrice).map((price) => ({ ...within, inputPricePerMillion: price })),
      ...pricesAround(maxOutputPrice).map((price) => ({ ...within, outputPricePerMillion: price })),
      { inputPricePerMillion: maxInputPrice },
      { outputPricePerMillion: maxOutputPrice },
      {},
      { free: true },
      { inputPricePerMillion: '0', outputPricePerMillion: '0' },
      { inputPricePerMillion: PICO, outputPricePerMillion: '0' },
      { inputPricePerMillion: '0', outputPricePerMillion: PICO },
      { inputPricePerMillion: '0', outputPricePerMillion: '0', requestPrice: '0.01' },
    ].map(pricedSlice),
  );
}

/** One pico-dollar a token, in USD per million: the least that prices differ by. */
const PICO = '0.000001';

/** A model that is called what it costs. */
function pricedSlice(mapping: FixtureMapping): Slice {
  const { inputPricePerMillion: input = 'unknown', outputPricePerMillion: output = 'unknown' } = mapping;
  const { requestPrice, free } = mapping;
  const more = `${requestPrice === undefined ? '' : `-request-${requestPrice}`}${free ? '-flagged-free' : ''}`;
  const id = `input-${input}-output-${output}${more}`;
  return { ...modelSlice(id, [OTHER_PROVIDER], [], mapping), names: [id] };
}

/** At the maximum, and just above and below it, where there are such prices. */
function pricesAround(maximum: string): string[] {
  const cap = parseUsdPerMillion(maximum);
  const largest = parseUsdPerMillion('9000000');
  return [cap, cap + 1n, cap - 1n].filter((price) => price >= 0n && price <= largest).map(formatUsdPerMillion);
}

/** First and last address of each range, one outside each end, the first and last also IPv4-mapped, and the unknown one. */
export function addressesAround(ranges: readonly string[]): string[] {
  const around = ranges.flatMap((text) => {
    const range = parseRange(text);
    const { family } = range;
    const { first, last } = intervalOf(range);
    const end = family === 4 ? 1n << 32n : 1n << 128n;
    const inFamily = [first - 1n, first, last, last + 1n].filter((value) => value >= 0n && value < end);
    const texts = inFamily.map((value) => formatAddress({ family, value }));
    const mapped = family === 4 ? [first, last].map((value) => `::ffff:${formatAddress({ family, value })}`) : [];
    return [...texts, ...mapped];
  });
  return [...new Set([...around, UNKNOWN_ADDRESS])];
}
