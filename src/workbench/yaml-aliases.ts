import { type Alias, type Document, isAlias, isCollection, isNode, isPair, type Node, visit } from 'yaml';

/** Most aliases of a document, and most values that it may hold when each alias is written out. */
const MAX_ALIASES = 10_000;
const MAX_VALUES = 200_000;

/** An alias means nothing, or too much. */
export class AliasFault extends Error {
  override readonly name = 'AliasFault';
  /** Of the alias, or of the whole document. */
  readonly node: unknown;

  constructor(node: unknown, message: string) {
    super(message);
    this.node = node;
  }
}

/**
 * What each alias of a document means. @throws AliasFault for one of nothing, one that stands in what it means, and aliases that
 * multiply beyond what any fixture needs
 */
export function aliasTargets(document: Document): ReadonlyMap<Alias, Node> {
  const anchored = new Map<string, Node>();
  const targets = new Map<Alias, Node>();
  visit(document, {
    Node(_, node) {
      if (!isAlias(node)) {
        if (node.anchor !== undefined) anchored.set(node.anchor, node);
        return;
      }
      const target = anchored.get(node.source);
      if (target === undefined) throw new AliasFault(node, nothing(node.source));
      targets.set(node, target);
      if (targets.size > MAX_ALIASES) throw new AliasFault(node, `A document has at most ${MAX_ALIASES} aliases.`);
    },
  });
  if (targets.size > 0 && valuesOf(document.contents, targets) > MAX_VALUES) {
    throw new AliasFault(
      document.contents,
      `With its aliases written out a document has at most ${MAX_VALUES} values.`,
    );
  }
  return targets;
}

const nothing = (source: string): string =>
  `There is no anchor "${source}" before it in this document; what several documents share is a file that they include.`;

/** How many values a node holds, each target of an alias counted as often as it is meant. */
function valuesOf(root: unknown, targets: ReadonlyMap<Alias, Node>): number {
  const known = new Map<unknown, number>();
  const open = new Set<unknown>();
  const count = (node: unknown): number => {
    if (isPair(node)) return count(node.key) + count(node.value);
    if (!isNode(node)) return 1;
    const found = known.get(node);
    if (found !== undefined) return found;
    if (open.has(node)) throw new AliasFault(node, 'An alias stands in what it means.');
    open.add(node);
    let values = 1;
    if (isAlias(node)) values = count(targets.get(node));
    else if (isCollection(node)) for (const item of node.items) values += count(item);
    open.delete(node);
    known.set(node, values);
    return values;
  };
  return count(root);
}
