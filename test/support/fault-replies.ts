// What a fault server says, as bytes.
import type { Fault, FaultExchange, Kind } from './fault-server.ts';
import { chunk, completion, USAGE_CHUNK } from './upstream.ts';

/** What looks like a credential in an upstream's text. No caller may ever read it. */
export const CREDENTIAL = 'sk-proj-0123456789abcdefghijklmnop';
/** What an upstream says outside an answer: unless its status says that it is an error's text, no caller may read it. */
export const FAULT_TEXT = `the upstream's own words, ${CREDENTIAL}`;

/** An error as OpenAI words it; a type that nobody knows says nothing about whose fault it is. */
export const errorBody = (type = 'unheard_of'): object => ({
  error: { message: FAULT_TEXT, type, param: null, code: null },
});

type Headers = Readonly<Record<string, string | number>>;

export const head = (status: string, headers: Headers = {}): string =>
  `HTTP/1.1 ${status}\r\n${Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')}\r\n`;

export const JSON_HEAD = { 'content-type': 'application/json' } as const;
const EVENTS_HEAD = { 'content-type': 'text/event-stream', 'transfer-encoding': 'chunked' } as const;

/** One piece of a chunked body. */
export const piece = (text: string): string => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
export const LAST_PIECE = '0\r\n\r\n';

export const event = (data: object | string): string =>
  `data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`;

/** A whole answer with its length. */
export const answer =
  (status: string, body: string | object, headers: Headers = JSON_HEAD): Fault =>
  async ({ write }) => {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    await write(`${head(status, { ...headers, 'content-length': Buffer.byteLength(text) })}${text}`);
  };

/** The head of a stream and these events, each in a piece of its own. */
export const beginning = (...events: (object | string)[]): string =>
  `${head('200 OK', EVENTS_HEAD)}${events.map((data) => piece(event(data))).join('')}`;

const sayHal = chunk({ content: 'Hal' });
const sayLo = chunk({ content: 'lo' });
const finish = chunk({}, 'stop');

/** The events of a good stream, but for `[DONE]`: what it says, its end, its usage. */
export const GOOD_EVENTS = [sayHal, sayLo, finish, USAGE_CHUNK] as const;
export const GOOD_TEXT = 'Hallo';

/** A whole good answer of either kind. */
export const goodAnswer = (kind: Kind): string => {
  if (kind === 'streamed') return `${beginning(...GOOD_EVENTS, '[DONE]')}${LAST_PIECE}`;
  const text = JSON.stringify(completion(GOOD_TEXT));
  return `${head('200 OK', { ...JSON_HEAD, 'content-length': Buffer.byteLength(text) })}${text}`;
};

export const good: Fault = ({ kind, write }) => write(goodAnswer(kind));

/** Says these bytes and then nothing, with the connection open. */
export const stall =
  (bytes: string | ((kind: Kind) => string)): Fault =>
  ({ kind, write }) =>
    write(typeof bytes === 'string' ? bytes : bytes(kind));

/** Says these bytes and hangs up. */
export const cut =
  (bytes: string | ((kind: Kind) => string)): Fault =>
  async ({ kind, write, cut: hangUp }) => {
    await write(typeof bytes === 'string' ? bytes : bytes(kind));
    await hangUp();
  };

/** Says the first bytes, and then the same again and again for as long as someone takes them. */
export const endless =
  (bytes: string | ((kind: Kind) => string), again: string): Fault =>
  async (exchange: FaultExchange) => {
    await exchange.write(typeof bytes === 'string' ? bytes : bytes(exchange.kind));
    while (!exchange.isClosed) await exchange.write(again);
  };

/** A beginning of a whole answer of 1,000 bytes, or of a stream with these events. */
export const begun =
  (...events: (object | string)[]) =>
  (kind: Kind): string =>
    kind === 'streamed'
      ? beginning(...events)
      : `${head('200 OK', { ...JSON_HEAD, 'content-length': 1000 })}{"object":"chat.completion",`;
