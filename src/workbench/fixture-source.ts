import { readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { type Document, isAlias, isMap, isNode, isScalar, isSeq, LineCounter, parseAllDocuments, visit } from 'yaml';

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

/** The YAML (or JSON) files of one run, each read once. */
export class FixtureSources {
  readonly #read = new Map<string, readonly SourceDocument[]>();
  readonly #asked = new Set<string>();

  /** Every file that was asked for, whether it could be read or not. Absolute paths. */
  get files(): ReadonlySet<string> {
    return this.#asked;
  }

  /**
   * The documents of a file that are not empty.
   * @param file absolute path @param named where the file is named, if in another one @param maxBytes larger ones are refused
   * @throws FixtureFault naming the first place that cannot be read
   */
  read(file: string, named: Place = { file, line: 1, column: 1 }, maxBytes = MAX_BYTES): readonly SourceDocument[] {
    this.#asked.add(file);
    const known = this.#read.get(file);
    if (known !== undefined) return known;
    const lines = new LineCounter();
    const options = { lineCounter: lines, prettyErrors: false, stringKeys: true };
    const parsed = parseAllDocuments(readText(file, named, maxBytes), options);
    const documents = (Array.isArray(parsed) ? parsed : [])
      .map((document) => this.#toSource(file, document, lines))
      .filter(({ value }) => value !== null);
    this.#read.set(file, documents);
    return documents;
  }

  #toSource(file: string, document: Document, lines: LineCounter): SourceDocument {
    const placeAt = (offset: number): Place => {
      const { line, col } = lines.linePos(offset);
      return { file, line: Math.max(line, 1), column: Math.max(col, 1) };
    };
    const [wrong] = [...document.errors, ...document.warnings];
    if (wrong !== undefined) throw new FixtureFault(placeAt(wrong.pos[0]), `YAML: ${sentence(wrong.message)}`);
    const placeOf = (steps: Path): Place => placeAt(offsetOf(document, steps) ?? 0);
    return {
      value: valueIn(document, placeAt),
      placeOf,
      open: (name, steps) => this.read(path.resolve(path.dirname(file), name), placeOf(steps)),
    };
  }
}

function readText(file: string, named: Place, maxBytes: number): string {
  const found = statSync(file, { throwIfNoEntry: false });
  if (found === undefined) throw new FixtureFault(named, `There is no file ${file}.`);
  if (!found.isFile()) throw new FixtureFault(named, `${file} is not a file.`);
  if (found.size > maxBytes) throw new FixtureFault(named, `${file} is larger than ${maxBytes} bytes.`);
  return readFileSync(file, 'utf8');
}

/** @throws FixtureFault for an alias of nothing, and aliases that multiply beyond what any fixture needs */
function valueIn(document: Document, placeAt: (offset: number) => Place): unknown {
  visit(document, {
    Alias(_, alias) {
      if (alias.resolve(document) !== undefined) return;
      throw new FixtureFault(placeAt(startOf(alias) ?? 0), `YAML: There is no anchor "${alias.source}".`);
    },
  });
  try {
    return document.toJS();
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new FixtureFault(placeAt(startOf(document.contents) ?? 0), `YAML: ${sentence(message)}`);
  }
}

const sentence = (text: string): string => (text.endsWith('.') ? text : `${text}.`);

const startOf = (node: unknown): number | undefined => (isNode(node) ? node.range?.[0] : undefined);

function offsetOf(document: Document, steps: Path): number | undefined {
  let node: unknown = document.contents;
  let offset = startOf(node);
  for (const step of steps) {
    const holder = isAlias(node) ? node.resolve(document) : node;
    if (isMap(holder)) {
      const pair = holder.items.find(({ key }) => isScalar(key) && key.value === String(step));
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
