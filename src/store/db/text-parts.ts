import { hash } from 'node:crypto';
import { getOrMake } from '../../lib/collections.ts';
import type { Database } from './database.ts';
import { bind, build, prepare } from './sql.ts';

/**
 * JSON texts that are long and change in few places. A column holds a short one itself. Of a long one it holds `@id`: the part of
 * this id lists the ids of the parts that the text is made of, one after the other, and may be long itself. Equal parts of one
 * owner are stored once. What begins with `@` is no JSON, so that neither is taken for the other.
 */
export interface TextParts {
  /** Returns the column's value for a text. */
  store(owner: string, text: string): string;
  /** The text, by what a column holds. @throws Error when a part is missing */
  read(stored: string): string;
  /** Deletes the parts of texts of one owner, but for those that others of that owner share. */
  drop(stored: readonly string[], kept: readonly string[]): void;
}

/** Parts of `compiled_parts` are never dropped: decisions refer to them. */
type PartsTable = 'compiled_parts' | 'rule_parts';

/** A column contains a text of up to this many characters itself. */
const MAX_WHOLE = 2048;
const MARK = '@';
const REFERENCE = /^@(\d+)$/;

export const isInParts = (stored: string): boolean => stored.startsWith(MARK);

/** Prepared once for a connection, since a write of many rules asks for them again and again. */
const PREPARED: Readonly<Record<PartsTable, WeakMap<Database['connection'], TextParts>>> = {
  compiled_parts: new WeakMap(),
  rule_parts: new WeakMap(),
};

export const prepareTextParts = ({ connection }: Pick<Database, 'connection'>, table: PartsTable): TextParts =>
  getOrMake(PREPARED[table], connection, () => textPartsOf(connection, table));

function textPartsOf(connection: Database['connection'], table: PartsTable): TextParts {
  const ofId = build.selectFrom(table).select('text').where('id', '=', bind<number>('id'));
  const selectText = prepare(connection, ofId.compile());
  const ofDigest = build.selectFrom(table).select('id').where('digest', '=', bind<string>('digest'));
  const selectId = prepare(connection, ofDigest.compile());
  const insert = prepare(
    connection,
    build
      .insertInto(table)
      .values({ digest: bind<string>('digest'), text: bind<string>('text') })
      .returning('id')
      .compile(),
  );
  const remove = prepare(connection, build.deleteFrom(table).where('id', '=', bind<number>('id')).compile());

  function textOf(id: number): string {
    const row = selectText.get({ id });
    if (row === undefined) throw new Error(`Part ${id} of a stored text is missing.`);
    return row.text;
  }

  function idOf(owner: string, text: string): number {
    const digest = hash('sha256', `${owner}\n${text}`, 'base64url').slice(0, 22);
    const row = selectId.get({ digest }) ?? insert.get({ digest, text });
    if (row === undefined) throw new Error('A part of a text was not stored.');
    return row.id;
  }

  function store(owner: string, text: string): string {
    if (text.length <= MAX_WHOLE) return text;
    const ids = cutText(text).map((piece) => idOf(owner, piece));
    return MARK + idOf(owner, store(owner, ids.join(',')));
  }

  /** The ids of the list that a long text is referred to by, and of the parts in it. */
  function idsIn(stored: string): { list: number; parts: readonly number[] } {
    const list = Number(REFERENCE.exec(stored)?.[1] ?? Number.NaN);
    if (Number.isNaN(list)) throw new Error('A stored text is neither a text nor a reference to its parts.');
    return { list, parts: read(textOf(list)).split(',').map(Number) };
  }

  function read(stored: string): string {
    return isInParts(stored) ? idsIn(stored).parts.map(textOf).join('') : stored;
  }

  function everyId(stored: string): number[] {
    if (!isInParts(stored)) return [];
    const { list, parts } = idsIn(stored);
    return [list, ...parts, ...everyId(textOf(list))];
  }

  return {
    store,
    read,
    drop(stored, kept) {
      const shared = new Set(kept.flatMap(everyId));
      for (const id of new Set(stored.flatMap(everyId)).difference(shared)) remove.run({ id });
    },
  };
}

/** Joins the column values of several texts into that of the text made of them. */
export const joinStored = (pieces: readonly string[]): string =>
  pieces.some(isInParts) ? MARK + JSON.stringify(pieces) : pieces.join('');

/** The text of what `joinStored` gave. @throws Error when a part is missing */
export function readJoined(parts: Pick<TextParts, 'read'>, stored: string): string {
  if (!isInParts(stored)) return stored;
  const pieces: unknown = JSON.parse(stored.slice(MARK.length));
  if (!Array.isArray(pieces)) throw new Error('A stored text is not a list of pieces.');
  return pieces.map((piece) => parts.read(String(piece))).join('');
}

/** Characters of a piece: at least and at most; on average a thousand more than the least. */
const LEAST = 256;
const MOST = 8192;
/** Bits of the 32-bit rolling sum that are ignored: a piece ends where the first ten are zero, which is once in 1024 characters. */
const IGNORED_BITS = 22;

/** A random number for each of 256 characters. */
const GEAR = Int32Array.from({ length: 256 }, (_, code) => hash('sha256', `gear ${code}`, 'buffer').readInt32BE());

/**
 * Cuts a text where its own last 32 characters say so, and not at fixed places: after a change all pieces but those that it
 * touches are the same as before.
 */
export function cutText(text: string): string[] {
  const pieces: string[] = [];
  let start = 0;
  let sum = 0;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    sum = ((sum << 1) + (GEAR[code & 255] ?? 0)) | 0;
    const length = index + 1 - start;
    const ends = length >= LEAST && (sum >>> IGNORED_BITS === 0 || length >= MOST);
    // The two halves of a character stay together.
    if (!ends || (code & 0xfc00) === 0xd800) continue;
    pieces.push(text.slice(start, index + 1));
    start = index + 1;
  }
  if (start < text.length) pieces.push(text.slice(start));
  return pieces;
}
