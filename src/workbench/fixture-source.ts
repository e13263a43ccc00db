import { readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import {
  type Alias,
  type Document,
  isAlias,
  isMap,
  isNode,
  isPair,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  parseAllDocuments,
} from 'yaml';
import { getOrMake } from '../domain/get-or-make.ts';
import { AliasFault, aliasTargets } from './yaml-aliases.ts';

/** Where something stands; line and column count from 1. */
export interface Place {
  /** Absolute path. */
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

/** A fixture, or a file that it needs, is not what it must be. */
export class FixtureFault extends Error {
  override readonly name = 'FixtureFault';
  readonly place: Place;

  constructor(place: Place, message: string) {
    super(message);
    this.place = place;
  }
}

/** Steps from the root of a document to something in it. */
export type Path = readonly (string | number)[];

/** One YAML document: its value, and where each part of it stands. */
export interface SourceDocument {
  /** As `JSON.parse` would give it. */
  readonly value: unknown;
  /** The place of what the path leads to, of its name where it has one; of the nearest part above it if there is no such thing. */
  placeOf(path: Path): Place;
  /** The documents of a file that is named, relative to this one, at `path`. @throws FixtureFault */
  open(name: string, path: Path): readonly SourceDocument[];
}

/** The largest fixture file that is read, and the largest export of a database. */
export const MAX_BYTES = 1_000_000;
export const MAX_EXPORT_BYTES = 16_000_000;

/** The YAML (or JSON) files of one run. Those that others name are read once; the syntax of the others is not kept. */
export class FixtureSources {
  readonly #named = new Map<string, readonly SourceDocument[]>();
  readonly #asked = new Map<string, string>();

  /** Every file that was asked for, whether it could be read or not. Absolute paths. */
  get files(): Iterable<string> {
    return this.#asked.keys();
  }

  /** Whether a file was written, moved or removed after it was asked for. */
  get areStale(): boolean {
    return [...this.#asked].some(([file, version]) => versionOf(file) !== version);
  }

  /**
   * The documents of a file that are not empty.
   * @param file absolute path @param named where the file is named, if in another one @param maxBytes larger ones are refused
   * @throws FixtureFault naming the first place that cannot be read
   */
  read(file: string, named: Place = { file, line: 1, column: 1 }, maxBytes = MAX_BYTES): readonly SourceDocument[] {
    this.#asked.set(file, versionOf(file));
    const lines = new LineCounter();
    const options = { lineCounter: lines, prettyErrors: false, stringKeys: true, merge: true };
    const text = readText(file, named, maxBytes);
    const parsed = parseAllDocuments(text, options);
    const hasAliases = ALIAS.test(text);
    return (Array.isArray(parsed) ? parsed : [])
      .map((document) => this.#toSource(file, document, lines, hasAliases))
      .filter(({ value }) => value !== null);
  }

  #open(file: string, named: Place): readonly SourceDocument[] {
    return getOrMake(this.#named, file, () => this.read(file, named));
  }

  #toSource(file: string, document: Document, lines: LineCounter, hasAliases: boolean): SourceDocument {
    const placeAt = (offset: number): Place => {
      const { line, col } = lines.linePos(offset);
      return { file, line: Math.max(line, 1), column: Math.max(col, 1) };
    };
    const [wrong] = [...document.errors, ...document.warnings];
    if (wrong !== undefined) throw new FixtureFault(placeAt(wrong.pos[0]), `YAML: ${sentence(wrong.message)}`);
    const locate = (fault: Error): FixtureFault => {
      const node = fault instanceof AliasFault ? fault.node : document.contents;
      return new FixtureFault(placeAt(startOf(node) ?? 0), `YAML: ${sentence(fault.message)}`);
    };
    try {
      const targets = hasAliases ? aliasTargets(document) : NO_ALIASES;
      const placeOf = (steps: Path): Place => placeAt(offsetOf(document, targets, steps) ?? 0);
      return {
        // Bounded already; the parser's own bound refuses an anchor that is used a hundred times.
        value: document.toJS({ maxAliasCount: -1 }),
        placeOf,
        open: (name, steps) => this.#open(path.resolve(path.dirname(file), name), placeOf(steps)),
      };
    } catch (error) {
      throw error instanceof Error ? locate(error) : error;
    }
  }
}

/** Where an alias can stand; a text without it has none. */
const ALIAS = /(?:^|[\s[{,:-])\*/m;

type Targets = ReadonlyMap<Alias, Node>;
const NO_ALIASES: Targets = new Map();

/** Differs after each change of the file, as far as the clock of its file system is fine enough. */
function versionOf(file: string): string {
  const found = statSync(file, { throwIfNoEntry: false, bigint: true });
  return found === undefined ? 'none' : `${found.ino} ${found.size} ${found.mtimeNs} ${found.ctimeNs}`;
}

function readText(file: string, named: Place, maxBytes: number): string {
  const found = statSync(file, { throwIfNoEntry: false });
  if (found === undefined) throw new FixtureFault(named, `There is no file ${file}.`);
  if (!found.isFile()) throw new FixtureFault(named, `${file} is not a file.`);
  if (found.size > maxBytes) throw new FixtureFault(named, `${file} is larger than ${maxBytes} bytes.`);
  return readFileSync(file, 'utf8');
}

const sentence = (text: string): string => (text.endsWith('.') ? text : `${text}.`);

const startOf = (node: unknown): number | undefined => (isNode(node) ? node.range?.[0] : undefined);

function offsetOf(document: Document, targets: Targets, steps: Path): number | undefined {
  let node: unknown = document.contents;
  let offset = startOf(node);
  for (const step of steps) {
    const holder = meant(node, targets);
    if (isMap(holder)) {
      const pair = pairOf(holder.items, String(step), targets);
      if (pair === undefined) return offset;
      offset = startOf(pair.key) ?? offset;
      node = pair.value;
    } else if (isSeq(holder) && holder.items[Number(step)] !== undefined) {
      node = holder.items[Number(step)];
      offset = startOf(node) ?? offset;
    } else {
      return offset;
    }
  }
  return offset;
}

const meant = (node: unknown, targets: Targets): unknown => (isAlias(node) ? targets.get(node) : node);

/** Of the map itself, else of what it merges by `<<`. */
function pairOf(items: readonly unknown[], name: string, targets: Targets): Pair | undefined {
  const pairs = items.filter((item) => isPair(item));
  const own = pairs.find(({ key }) => isScalar(key) && key.value === name);
  if (own !== undefined) return own;
  const merged = pairs
    .filter(({ key }) => isScalar(key) && key.source === '<<')
    .map(({ value }) => meant(value, targets));
  const maps = merged.flatMap((each) => (isSeq(each) ? each.items.map((item) => meant(item, targets)) : [each]));
  for (const map of maps) {
    const found = isMap(map) ? pairOf(map.items, name, targets) : undefined;
    if (found !== undefined) return found;
  }
  return undefined;
}
