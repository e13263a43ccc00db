import { randomBytes } from 'node:crypto';
import { entryOf } from '../../lib/text.ts';
import { isRecord } from '../../providers/wire/json.ts';

const LONG = 16 * 1024;

/** Fields that hold a picture, or what only the provider reads. Any other text may be what the answer is billed by. */
const OPAQUE: ReadonlySet<string> = new Set(['b64_json', 'url', 'signature', 'thoughtSignature']);

/** The same of a field in another one. */
const OPAQUE_WITHIN: Readonly<Record<string, string>> = { inlineData: 'data', inline_data: 'data' };

/** Base64, and the URLs that hold it: nothing that JSON escapes, however deep it stands in texts that are JSON themselves. */
const PLAIN = /^[A-Za-z0-9+/=_:;,.-]*$/;

/** As a text in base16, which is base64 too: longer than whatever an adapter would take for an id, a name or a word. */
const STAND_IN_BYTES = 512;

/**
 * JSON in which something unguessable stands for each long text that nobody here reads, such as a picture in base64; its bytes
 * are put into `longTexts` under it.
 */
export function withoutLongTexts(json: unknown, longTexts: Map<string, Uint8Array>, field = '', within = ''): unknown {
  if (typeof json === 'string') {
    const isOpaque = OPAQUE.has(field) || entryOf(OPAQUE_WITHIN, within) === field;
    if (!isOpaque || json.length < LONG || !PLAIN.test(json)) return json;
    const standIn = randomBytes(STAND_IN_BYTES).toString('hex');
    longTexts.set(standIn, new TextEncoder().encode(json));
    return standIn;
  }
  if (Array.isArray(json)) return json.map((item: unknown) => withoutLongTexts(item, longTexts));
  if (!isRecord(json)) return json;
  const fields = Object.entries(json).map(([name, value]) => [name, withoutLongTexts(value, longTexts, name, field)]);
  return Object.fromEntries(fields);
}
