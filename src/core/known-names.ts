import type { Catalog } from '../catalog/catalog.ts';
import { coversMappedBlock, parseRange, type TrustedProxies } from '../domain/address.ts';
import { byList, type CanonicalRule } from '../domain/iam-rule.ts';
import { nearest } from '../lib/text.ts';
import type { CustomNames } from '../store/providers/custom-names.ts';

/** Unknown entries for which a nearest name is looked for; a rule may hold 1,000 of them. */
const MAX_SEARCHES = 100;
/** Characters at which a name can be cut to a meaningful prefix. */
const CUTS = /[-/.:@_]/g;

const NOTHING: CustomNames = { providers: [], models: [], tags: [], aliases: [] };

/** The names by which rules may mean models, providers and tags, and which of them is nearest to a name that nothing has. */
export class KnownNames {
  readonly #models: PrefixedNames;
  readonly #tags: PrefixedNames;
  readonly #providers: ReadonlySet<string>;
  readonly #aliases: PrefixedNames;
  readonly #nearest = new Map<string, string | undefined>();

  constructor(catalog: Pick<Catalog, 'mappings' | 'providers'>, custom: CustomNames = NOTHING) {
    const mappings = catalog.mappings();
    this.#models = new PrefixedNames([...mappings.flatMap(({ names }) => names), ...custom.models]);
    this.#tags = new PrefixedNames([...mappings.flatMap(({ tags }) => tags), ...custom.tags]);
    this.#aliases = new PrefixedNames(custom.aliases);
    this.#providers = new Set([
      ...catalog.providers().map(({ id }) => id),
      ...mappings.flatMap(({ providerNames }) => providerNames),
      ...custom.providers.map((name) => `custom:${name}`),
    ]);
  }

  /** Whether an entry of a model rule means anything: a name, or a prefix that ends in `*`. */
  hasModel(entry: string): boolean {
    return this.#models.has(entry);
  }

  /** Whether an entry of a model rule is an alias, or begins one. Rules judge models, so it means no model by that. */
  isAlias(entry: string): boolean {
    return this.#aliases.has(entry);
  }

  /** Whether a tag rule's entry matches any tag. */
  hasTag(entry: string): boolean {
    return this.#tags.has(entry);
  }

  hasProvider(entry: string): boolean {
    return this.#providers.has(entry);
  }

  /** The nearest model to a meaningless entry of a model rule; undefined: no name is near. */
  nearestModel(entry: string): string | undefined {
    return this.#remembered(`model ${entry}`, () => this.#models.nearest(entry));
  }

  /** The nearest tag for an entry of a tag rule. */
  nearestTag(entry: string): string | undefined {
    return this.#remembered(`tag ${entry}`, () => this.#tags.nearest(entry));
  }

  /** The nearest name for an entry of a provider rule; a custom provider without its `custom:` is nearest. */
  nearestProvider(entry: string): string | undefined {
    const custom = `custom:${entry}`;
    return this.#providers.has(custom)
      ? custom
      : this.#remembered(`provider ${entry}`, () => nearest(entry, this.#providers));
  }

  #remembered(key: string, search: () => string | undefined): string | undefined {
    if (!this.#nearest.has(key) && this.#nearest.size < MAX_SEARCHES) this.#nearest.set(key, search());
    return this.#nearest.get(key);
  }
}

/** Names that an entry may state whole, or by a prefix that ends in `*`. */
class PrefixedNames {
  readonly #names: ReadonlySet<string>;
  #prefixes: { readonly whole: ReadonlySet<string>; readonly cut: ReadonlySet<string> } | undefined;

  constructor(names: Iterable<string>) {
    this.#names = new Set(names);
  }

  has(entry: string): boolean {
    if (!entry.endsWith('*')) return this.#names.has(entry);
    const prefix = entry.slice(0, -1);
    return this.#names.values().some((name) => name.startsWith(prefix));
  }

  nearest(entry: string): string | undefined {
    if (!entry.endsWith('*')) return nearest(entry, this.#names);
    const prefix = entry.slice(0, -1);
    const prefixes = this.#startsOfNames();
    // A start of the prefix itself would match more than was written.
    const narrow = (isCut(prefix) ? prefixes.cut : prefixes.whole)
      .values()
      .filter((start) => !prefix.startsWith(start));
    const found = nearest(prefix, narrow);
    return found === undefined ? undefined : `${found}*`;
  }

  /** Beginnings of names, up to a cut and including it. */
  #startsOfNames() {
    if (this.#prefixes !== undefined) return this.#prefixes;
    const [whole, cut] = [new Set<string>(), new Set<string>()];
    for (const name of this.#names) {
      whole.add(name);
      for (const { index } of name.matchAll(CUTS)) {
        whole.add(name.slice(0, index));
        cut.add(name.slice(0, index + 1));
      }
    }
    this.#prefixes = { whole, cut };
    return this.#prefixes;
  }
}

const isCut = (prefix: string): boolean => prefix.slice(-1).search(CUTS) === 0;

/**
 * Warnings for a rule that is accepted but may not mean what its author meant (policy/reference.md, "Writing a rule").
 * @param trustedProxies undefined: unset
 */
export function ruleWarnings(
  rule: CanonicalRule,
  known: KnownNames,
  trustedProxies: TrustedProxies | undefined,
): string[] {
  const names = (): string[] => nameWarnings(rule, known);
  return byList(
    rule,
    { models: names, providers: names, ip_cidrs: (ranges) => ipWarnings(ranges, trustedProxies), tags: names },
    [],
  );
}

/** A sentence for each entry that means no model, no provider or no tag, with the nearest name where one is near. */
export const nameWarnings = (rule: CanonicalRule, known: KnownNames): string[] =>
  byList<string[]>(
    rule,
    {
      models: (models) => models.flatMap((entry) => modelWarning(entry, known) ?? []),
      providers: (providers) =>
        providers
          .filter((entry) => entry !== 'custom' && !known.hasProvider(entry))
          .map((entry) => providerWarning(entry, known.nearestProvider(entry))),
      ip_cidrs: () => [],
      tags: (tags) => tags.filter((entry) => !known.hasTag(entry)).map((entry) => tagWarning(entry, known)),
    },
    [],
  );

/** The end of a sentence about a name that nothing has. */
export const didYouMean = (nearest: string | undefined): string =>
  nearest === undefined ? '.' : `; did you mean \`${nearest}\`?`;

function modelWarning(entry: string, known: KnownNames): string | undefined {
  if (known.isAlias(entry)) return aliasWarning(entry, known.hasModel(entry));
  if (known.hasModel(entry)) return undefined;
  const end = didYouMean(known.nearestModel(entry));
  return entry.endsWith('*')
    ? `No name of a model in the catalogue begins with "${entry.slice(0, -1)}"${end}`
    : `"${entry}" is not the name of a model in the catalogue${end}`;
}

/** Rules judge the models of an alias, never the alias. `*` and other prefixes that mean models too are meant so. */
function aliasWarning(entry: string, hasModel: boolean): string | undefined {
  if (entry.endsWith('*')) {
    return hasModel
      ? undefined
      : `"${entry}" begins the name of an alias only; rules judge the models of an alias, so it matches nothing: name the models.`;
  }
  return hasModel
    ? `"${entry}" is also an alias; the rule judges the model of that name, not the alias, which may mean other models.`
    : `"${entry}" is an alias; rules judge the models of an alias, so it matches nothing: name the models.`;
}

function providerWarning(entry: string, nearest: string | undefined): string {
  if (entry.startsWith('custom:')) {
    return `"${entry}" is not a custom provider of the organization${didYouMean(nearest)}`;
  }
  const end = nearest === undefined ? `; a custom provider is written "custom:${entry}".` : didYouMean(nearest);
  return `"${entry}" is not a provider in the catalogue${end}`;
}

function tagWarning(entry: string, known: KnownNames): string {
  const end = didYouMean(known.nearestTag(entry));
  return entry.endsWith('*')
    ? `No model has a tag that begins with "${entry.slice(0, -1)}"${end}`
    : `No model has the tag "${entry}"${end}`;
}

function ipWarnings(ranges: readonly string[], trustedProxies: TrustedProxies | undefined): string[] {
  const wide = ranges.filter((range) => coversMappedBlock(parseRange(range)));
  const warnings = wide.map((range) => `"${range}" holds IPv6 addresses only; IPv4 clients need a range of their own.`);
  if (trustedProxies !== undefined) return warnings;
  return [
    ...warnings,
    'TRUSTED_PROXIES is not set: the client address is whatever X-Forwarded-For says, so a caller can forge it, and callers without that header, such as those that connect directly, have none and are denied. Set it to the ranges of your proxies, or to `none` where callers connect directly.',
  ];
}
