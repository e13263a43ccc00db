import type { Catalog } from '../../catalog/catalog.ts';
import { nearest } from '../../lib/text.ts';
import type { CustomNames } from '../../store/providers/custom-names.ts';

/** Unknown entries for which a nearest name is looked for; a rule may hold 1,000 of them. */
const MAX_SEARCHES = 100;
/** Where a name can be cut to a prefix that means something. */
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

  /** The same of a tag rule. */
  hasTag(entry: string): boolean {
    return this.#tags.has(entry);
  }

  hasProvider(entry: string): boolean {
    return this.#providers.has(entry);
  }

  /** What an entry of a model rule that means nothing may have been meant to be; undefined: nothing is near. */
  nearestModel(entry: string): string | undefined {
    return this.#remembered(`model ${entry}`, () => this.#models.nearest(entry));
  }

  /** The same for an entry of a tag rule. */
  nearestTag(entry: string): string | undefined {
    return this.#remembered(`tag ${entry}`, () => this.#tags.nearest(entry));
  }

  /** The same for an entry of a provider rule; a custom provider without its `custom:` is nearest. */
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
    // What the prefix begins with would mean more than was written.
    const narrow = (isCut(prefix) ? prefixes.cut : prefixes.whole)
      .values()
      .filter((start) => !prefix.startsWith(start));
    const found = nearest(prefix, narrow);
    return found === undefined ? undefined : `${found}*`;
  }

  /** What names begin with, up to a cut and with it. */
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
