import { readFileSync, statSync } from 'node:fs';
import { type Document, isAlias, isMap, isNode, isScalar, isSeq, LineCounter, parseAllDocuments } from 'yaml';

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
  readonly file: string;
  /** As `JSON.parse` would give it. */
  readonly value: unknown;
  /** The place of what the path leads to, of its name where it has one; of the nearest part above it if there is no such thing. */
  placeOf(path: Path): Place;
}

const MAX_BYTES = 1_000_000;

/**
 * The documents of a YAML (or JSON) file that are not empty.
 * @param asked where the file is named, if in another one
 * @throws FixtureFault naming the first place that cannot be read.
 */
export function readSource(file: string, asked?: Place): SourceDocument[] {
  const text = readText(file, asked ?? { file, line: 1, column: 1 });
  const lines = new LineCounter();
  const documents = parseAllDocuments(text, { lineCounter: lines, prettyErrors: false, stringKeys: true });
  if (!Array.isArray(documents)) return [];
  return documents
    .filter((document) => document.errors.length > 0 || document.contents !== null)
    .map((document) => toSource(file, document, (offset) => placeAt(file, lines, offset)));
}

function readText(file: string, asked: Place): string {
  const size = statSync(file, { throwIfNoEntry: false })?.size;
  if (size === undefined) throw new FixtureFault(asked, `There is no file ${file}.`);
  if (size > MAX_BYTES) throw new FixtureFault(asked, `${file} is larger than ${MAX_BYTES} bytes.`);
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new FixtureFault(asked, `${file} cannot be read: ${error instanceof Error ? error.message : error}.`);
  }
}

function placeAt(file: string, lines: LineCounter, offset: number): Place {
  const { line, col } = lines.linePos(offset);
  return { file, line: Math.max(line, 1), column: Math.max(col, 1) };
}

function toSource(file: string, document: Document, placeOfOffset: (offset: number) => Place): SourceDocument {
  const [wrong] = [...document.errors, ...document.warnings];
  if (wrong !== undefined) throw new FixtureFault(placeOfOffset(wrong.pos[0]), `YAML: ${sentence(wrong.message)}`);
  const startOf = (node: unknown): number | undefined => (isNode(node) ? node.range?.[0] : undefined);
  const root = placeOfOffset(startOf(document.contents) ?? 0);
  try {
    return {
      file,
      value: document.toJS(),
      placeOf(path) {
        const offset = offsetOf(document, path, startOf);
        return offset === undefined ? root : placeOfOffset(offset);
      },
    };
  } catch (error) {
    // Aliases that multiply beyond what any fixture needs.
    throw new FixtureFault(root, `YAML: ${sentence(error instanceof Error ? error.message : String(error))}`);
  }
}

const sentence = (text: string): string => (text.endsWith('.') ? text : `${text}.`);

function offsetOf(document: Document, path: Path, startOf: (node: unknown) => number | undefined): number | undefined {
  let node: unknown = document.contents;
  let offset = startOf(node);
  for (const step of path) {
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
