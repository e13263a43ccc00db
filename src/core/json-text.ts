import type { JsonPieces } from '../net/long-texts.ts';

/** What a provider said, as the JSON of an object with one field at least, none of them the gateway's: bytes where it is large. */
export type ProviderJson = string | Uint8Array;

/** A whole answer as JSON: in pieces where it is large. */
export type JsonText = string | JsonPieces;

/** The JSON of one object that has the fields of both. What a provider said is neither parsed nor written again. */
export function withProviderJson(ours: object, theirs: ProviderJson): JsonText {
  const head = `${JSON.stringify(ours).slice(0, -1)},`;
  return typeof theirs === 'string' ? head + theirs.slice(1) : [Buffer.from(head), theirs.subarray(1)];
}
