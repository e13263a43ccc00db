import { randomBytes } from 'node:crypto';
import type { WireFormat } from '../domain/provider.ts';
import { exceededBound } from '../lib/json.ts';
import { entryOf } from '../lib/text.ts';
import type { Job } from '../lib/threads.ts';
import { gatheredResponse, type ResponseHeaders } from '../net/exchange.ts';
import { adapterFor } from '../providers/providers.ts';
import { ANSWER_BOUNDS, isRecord, parseJson } from '../providers/wire/fields.ts';
import { UpstreamError } from '../providers/wire/upstream-error.ts';
import { type AnswerKind, type ReadAnswer, readAnswer } from './provider-answer.ts';

/** A whole answer to read. */
export interface AnswerQuestion {
  readonly wire: WireFormat;
  readonly kind: AnswerKind;
  /** The secret that the request carried. */
  readonly secret: string | undefined;
  readonly status: number;
  readonly headers: ResponseHeaders;
  readonly body: Uint8Array;
}

/** An event of a stream to parse. */
export interface EventQuestion {
  readonly event: Uint8Array;
}

/** The parts of an `UpstreamError`, which does not keep its class between threads. */
type Failure = Omit<UpstreamError, 'name' | 'message' | 'stack' | 'cause' | 'withUsage'>;

export type AnswerReply =
  | { readonly answer: ReadAnswer<Uint8Array<ArrayBuffer>> }
  | { readonly failure: Failure }
  | { readonly parsed: { readonly json: unknown; readonly longTexts: ReadonlyMap<string, Uint8Array<ArrayBuffer>> } }
  | { readonly exceeded: true };

/** Bounds of an event that the serving thread can receive and write in a few milliseconds. */
const EVENT_BOUNDS = { ...ANSWER_BOUNDS, values: 20_000 };
const EVENT_BYTES = 1024 * 1024;

const encoder = new TextEncoder();

const asBuffer = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer =>
  Buffer.from(buffer, byteOffset, byteLength);

function read({ wire, kind, secret, status, headers, body }: AnswerQuestion): AnswerReply {
  try {
    // Reading a provider's answer depends on its wire format alone, not on a dialect.
    const answer = readAnswer(adapterFor(wire, ''), kind, gatheredResponse(status, headers, asBuffer(body)), secret);
    const [first, ...others] = answer.json;
    return { answer: { ...answer, json: [encoder.encode(first), ...others.map((json) => encoder.encode(json))] } };
  } catch (error) {
    if (exceededBound(body, ANSWER_BOUNDS) !== undefined) return { exceeded: true };
    if (error instanceof UpstreamError) return { failure: partsOf(error) };
    throw error;
  }
}

const partsOf = (error: UpstreamError): Failure => {
  const { errorType, summary, quoted, retryable, status, retryAfterMs, code, param, wrongPath, usage } = error;
  return { errorType, summary, quoted, retryable, status, retryAfterMs, code, param, wrongPath, usage };
};

function parse({ event }: EventQuestion): AnswerReply {
  if (exceededBound(event, EVENT_BOUNDS) === 'values') return { exceeded: true };
  const longTexts = new Map<string, Uint8Array<ArrayBuffer>>();
  const json = withoutLongTexts(parseJson(asBuffer(event).toString('utf8')), longTexts);
  const apart = longTexts.values().reduce((sum, { length }) => sum + length, 0);
  return event.length - apart > EVENT_BYTES ? { exceeded: true } : { parsed: { json, longTexts } };
}

function buffersOf(reply: AnswerReply): ArrayBuffer[] {
  if ('answer' in reply) return reply.answer.json.map(({ buffer }) => buffer);
  return 'parsed' in reply ? [...reply.parsed.longTexts.values()].map(({ buffer }) => buffer) : [];
}

export const startJob = (): Job<AnswerQuestion | EventQuestion, AnswerReply> => ({
  answer(question, handedOver) {
    const reply = 'event' in question ? parse(question) : read(question);
    handedOver.push(...buffersOf(reply));
    return reply;
  },
});

const LONG = 16 * 1024;

/** Fields that hold a picture, or what only the provider reads. Any other text may be what the answer is billed by. */
const OPAQUE: ReadonlySet<string> = new Set(['b64_json', 'url', 'signature', 'thoughtSignature']);

/** Opaque fields by the field that contains them. */
const OPAQUE_WITHIN: Readonly<Record<string, string>> = { inlineData: 'data', inline_data: 'data' };

/** Base64, and the URLs that hold it: nothing that JSON escapes, however deep it stands in texts that are JSON themselves. */
const PLAIN = /^[A-Za-z0-9+/=_:;,.-]*$/;

/** As a text in base16, which is base64 too: longer than whatever an adapter would take for an id, a name or a word. */
const STAND_IN_BYTES = 512;

/**
 * JSON in which something unguessable stands for each long text that nobody here reads, such as a picture in base64; its bytes
 * are put into `longTexts` under it.
 */
function withoutLongTexts(json: unknown, longTexts: Map<string, Uint8Array>, field = '', within = ''): unknown {
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
