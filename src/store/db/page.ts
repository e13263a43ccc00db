import { type ApiError, invalidRequest } from '../../domain/errors.ts';

/** A request for part of a list; lists are ordered newest first. */
export interface PageRequest {
  /** 1 to 200. */
  readonly limit: number;
  /** `nextCursor` of the page before. */
  readonly cursor?: string | undefined;
}

export interface Page<T> {
  readonly items: readonly T[];
  /** Null on the last page. */
  readonly nextCursor: string | null;
}

export const unknownCursor = (): ApiError => invalidRequest('The cursor does not belong to this list.', '/cursor');

/** The id after which a page begins; a cursor that we did not make is a 400. */
export function decodeCursor(cursor: string): string {
  const id = Buffer.from(cursor, 'base64url').toString('latin1');
  if (!/^[a-z]+_[0-9a-f]{32}$/.test(id)) throw unknownCursor();
  return id;
}

/** Makes a page of rows read with a limit one larger than the page's. */
export function toPage<T extends { readonly id: string }>(rows: readonly T[], limit: number): Page<T> {
  const items = rows.slice(0, limit);
  const last = items.at(-1);
  const more = rows.length > limit && last !== undefined;
  return { items, nextCursor: more ? Buffer.from(last.id, 'latin1').toString('base64url') : null };
}
