import { randomUUID } from 'node:crypto';
import { isRecord } from '../providers/json.ts';

const LONG = 16 * 1024;

/** Fields that hold a file or what only the provider reads. Of all others the text may be what the answer is billed by. */
const OPAQUE: ReadonlySet<string> = new Set([
  'b64_json',
  'data',
  'encrypted_content',
  'signature',
  'thoughtSignature',
  'url',
]);

/** Base64, and the URLs that hold it: nothing that JSON escapes, however deep it stands in texts that are JSON themselves. */
const PLAIN = /^[A-Za-z0-9+/=_:;,.-]*$/;

/** Longer than whatever an adapter would take for an id, a name or a word. */
const STAND_IN_LENGTH = 1024;

/**
 * JSON in which something unguessable stands for each long text that nobody here reads, such as a picture in base64; its bytes
 * are put into `longTexts` under it.
 */
export function withoutLongTexts(json: unknown, longTexts: Map<string, Uint8Array>, field = ''): unknown {
  if (typeof json === 'string') {
    if (json.length < LONG || !OPAQUE.has(field) || !PLAIN.test(json)) return json;
    const standIn = randomUUID().padEnd(STAND_IN_LENGTH, '-');
    longTexts.set(standIn, new TextEncoder().encode(json));
    return standIn;
  }
  if (Array.isArray(json)) return json.map((item: unknown) => withoutLongTexts(item, longTexts));
  if (!isRecord(json)) return json;
  const fields = Object.entries(json).map(([name, value]) => [name, withoutLongTexts(value, longTexts, name)]);
  return Object.fromEntries(fields);
}
