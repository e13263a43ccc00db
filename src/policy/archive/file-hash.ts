import { hash } from 'node:crypto';

const HASHES = { 'SHA-256': 'sha256', 'SHA-384': 'sha384', 'SHA-512': 'sha512' } as const;
export type HashName = keyof typeof HASHES;

export const isHashName = (name: unknown): name is HashName => typeof name === 'string' && Object.hasOwn(HASHES, name);

/** These OPA hashes as what they mean, not as they are written: sorted and without blanks. */
const STRUCTURED = /(?:^|\/)(?:data\.json|\.manifest)$/;

/** The hash, hex, of a file of a bundle, as OPA's signatures have it. @throws SyntaxError for a document that is not JSON */
export const fileHash = (name: string, content: Buffer, algorithm: HashName): string =>
  hash(HASHES[algorithm], STRUCTURED.test(name) ? canonicalDocument(content.toString('utf8')) : content);

/** JSON text as Go writes it, keys sorted; numbers stay as they were written. */
function canonicalDocument(text: string): string {
  return written(JSON.parse(text, sourced));
}

/** A number as its source has it: `1.0` is not `1` there. */
class Source {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

const sourced = (_key: string, value: unknown, context?: { readonly source?: string }): unknown =>
  typeof value === 'number' && context?.source !== undefined ? new Source(context.source) : value;

function written(value: unknown): string {
  if (value instanceof Source) return value.text;
  if (Array.isArray(value)) return `[${value.map(written).join()}]`;
  if (typeof value !== 'object' || value === null) return primitive(value);
  const members = Object.entries(value).sort(([one], [other]) => Buffer.compare(Buffer.from(one), Buffer.from(other)));
  return `{${members.map(([name, member]) => `${primitive(name)}:${written(member)}`).join()}}`;
}

/** Go escapes two more characters, in case the text stands in a script. */
const primitive = (value: unknown): string =>
  JSON.stringify(value).replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029');
