import { parentPort } from 'node:worker_threads';
import type { WireFormat } from '../../domain/provider.ts';
import { exceededBound } from '../../lib/json-bounds.ts';
import { gatheredResponse, type ResponseHeaders } from '../../net/exchange.ts';
import { adapterFor } from '../../providers/providers.ts';
import { ANSWER_BOUNDS, parseJson } from '../../providers/wire/json.ts';
import { UpstreamError } from '../../providers/wire/upstream-error.ts';
import { type AnswerKind, type ReadAnswer, readAnswer } from './read-answer.ts';
import { withoutLongTexts } from './without-long-texts.ts';

/** A whole answer to read. */
export interface AnswerQuestion {
  readonly wire: WireFormat;
  readonly kind: AnswerKind;
  /** What the request carried. */
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
export type Failure = Omit<UpstreamError, 'name' | 'message' | 'stack' | 'cause' | 'withUsage'>;

export type AnswerReply =
  | { readonly answer: ReadAnswer<Uint8Array<ArrayBuffer>> }
  | { readonly failure: Failure }
  | { readonly parsed: { readonly json: unknown; readonly longTexts: ReadonlyMap<string, Uint8Array<ArrayBuffer>> } }
  | { readonly exceeded: true };

/** What the serving thread can be handed of an event, and write down again, in a few milliseconds. */
const EVENT_BOUNDS = { ...ANSWER_BOUNDS, values: 20_000 };
const EVENT_BYTES = 1024 * 1024;

const encoder = new TextEncoder();

const asBuffer = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer =>
  Buffer.from(buffer, byteOffset, byteLength);

function read({ wire, kind, secret, status, headers, body }: AnswerQuestion): AnswerReply {
  try {
    // How a provider's answers are read depends on its wire format alone, and on no dialect.
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

/** Memory that is handed over and not copied. */
function transferred(reply: AnswerReply): ArrayBuffer[] {
  if ('answer' in reply) return reply.answer.json.map(({ buffer }) => buffer);
  return 'parsed' in reply ? [...reply.parsed.longTexts.values()].map(({ buffer }) => buffer) : [];
}

parentPort?.on('message', (question: AnswerQuestion | EventQuestion) => {
  const reply = 'event' in question ? parse(question) : read(question);
  parentPort?.postMessage(reply, transferred(reply));
});
