import { hash } from 'node:crypto';
import { comparePrice } from '../../catalog/cheapest.ts';
import { type ApiError, modelNotFound } from '../../domain/errors.ts';
import type { Mapping } from '../../domain/model.ts';
import type { Alias, OrganizationProviders } from '../../domain/provider.ts';

/** The present meaning of an alias, and the order in which its candidates are tried. */
export interface AliasOrder {
  readonly alias: Alias;
  /** Those of the first model, cheapest first, then those of the second, and so on; each once. */
  readonly mappings: readonly Mapping[];
  /** The position in the alias of the model that brought a mapping, by the mapping's id. */
  readonly positions: ReadonlyMap<string, number>;
}

const NONE: ReadonlyMap<string, Alias> = new Map();

/**
 * The aliases that the requests of a project can name, by name: its own, and those of its organization whose names it has not taken.
 * @param projectId null: of no project in particular, so only the organization's
 */
export function aliasesOf(
  { aliases }: Pick<OrganizationProviders, 'aliases'>,
  projectId: string | null,
): ReadonlyMap<string, Alias> {
  if (aliases.length === 0) return NONE;
  const shared = aliases.filter((alias) => alias.projectId === null);
  const own = aliases.filter((alias) => alias.projectId !== null && alias.projectId === projectId);
  return new Map([...shared, ...own].map((alias) => [alias.name, alias]));
}

/**
 * The models of an alias as mappings. A model that nothing has any more brings none.
 * @param meaningOf of a name as if there were no aliases: an alias never leads to another one, whatever is named so later
 */
export function expanded(alias: Alias, meaningOf: (name: string) => readonly Mapping[] | undefined): AliasOrder {
  const positions = new Map<string, number>();
  const mappings: Mapping[] = [];
  for (const [position, model] of alias.models.entries()) {
    for (const mapping of (meaningOf(model) ?? []).toSorted(comparePrice)) {
      if (positions.has(mapping.id)) continue;
      positions.set(mapping.id, position);
      mappings.push(mapping);
    }
  }
  return { alias, mappings, positions };
}

export const noModelServed = (alias: string): ApiError =>
  modelNotFound(`No model of the alias \`${alias}\` is served any more.`);

/**
 * Candidates of an alias in the order of their attempts. Without weights it is the order of the alias. With weights the first model is
 * drawn among those that are left, and the others follow in the order of the alias.
 * @param candidates some of the order's mappings, in its order. @param requestId decides the draw: the same id draws the same
 */
export function inOrder(
  { alias: { weights }, positions }: AliasOrder,
  candidates: readonly Mapping[],
  requestId: string,
): readonly Mapping[] {
  if (weights === null) return candidates;
  const positionOf = ({ id }: Mapping): number => positions.get(id) ?? 0;
  const left = [...new Set(candidates.map(positionOf))];
  const first = drawn(
    left.map((position) => [position, weights[position] ?? 0]),
    requestId,
  );
  const isFirst = (mapping: Mapping): boolean => positionOf(mapping) === first;
  return [...candidates.filter(isFirst), ...candidates.filter((mapping) => !isFirst(mapping))];
}

/** One of the positions, each as likely as its weight says; undefined: no weight is above 0. */
function drawn(weighted: readonly (readonly [position: number, weight: number])[], seed: string): number | undefined {
  const total = weighted.reduce((sum, [, weight]) => sum + weight, 0);
  let rest = unitOf(seed) * total;
  for (const [position, weight] of weighted) {
    if (rest < weight) return position;
    rest -= weight;
  }
  return undefined;
}

const BYTES = 6;

/** A number from 0 up to 1, which is not reached: the first 48 bits of the SHA-256 of a text. */
const unitOf = (text: string): number => hash('sha256', text, 'buffer').readUIntBE(0, BYTES) / 2 ** (8 * BYTES);
