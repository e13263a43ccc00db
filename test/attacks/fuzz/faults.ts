// How the fake upstreams fail. An honest fault charges nothing that was not asked for; a lie may, and goes to no key whose cap is checked.
import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../../crash/random.ts';
import { type Answer, textOf } from './answers.ts';
import { mutate, oddValue, written } from './json.ts';

/** One request to an upstream, and what it would say if it did not fail. */
export interface Exchange {
  readonly response: ServerResponse;
  readonly random: Random;
  readonly answer: Answer;
  /** What it was sent: its own credential and the caller's prompt, which it may repeat in errors. */
  readonly heard: string;
}

export type Fault = (exchange: Exchange) => void | Promise<void>;

const typeOf = ({ type }: Answer): string => (type === 'events' ? 'text/event-stream' : 'application/json');

/** The product has closed the connection. */
const isGone = ({ destroyed, socket }: ServerResponse): boolean => destroyed || socket?.destroyed !== false;

/** Resolves when the text has left, or nobody takes it any more. */
const write = (response: ServerResponse, text: string | Buffer): Promise<void> =>
  new Promise((done) => {
    if (isGone(response)) return done();
    response.once('close', done);
    response.write(text, () => {
      response.off('close', done);
      done();
    });
  });

/** Resolves when the response takes more, or is gone. */
const drained = (response: ServerResponse): Promise<void> =>
  new Promise((done) => {
    const goOn = (): void => {
      response.off('drain', goOn).off('close', goOn);
      done();
    };
    response.once('drain', goOn).once('close', goOn);
  });

export function begin(
  { response, answer }: Exchange,
  headers: Readonly<Record<string, string>> = {},
  status = 200,
): void {
  response.writeHead(status, { 'content-type': typeOf(answer), ...headers });
}

export const good: Fault = (exchange) => {
  begin(exchange);
  exchange.response.end(textOf(exchange.answer));
};

/** A whole answer of other bytes. */
const say =
  (
    textFor: (exchange: Exchange) => string | Buffer,
    headers: Readonly<Record<string, string>> = {},
    status = 200,
  ): Fault =>
  (exchange) => {
    begin(exchange, headers, status);
    exchange.response.end(textFor(exchange));
  };

/** Bytes on the connection in place of an answer; it is closed after them. */
const sayRaw =
  (textFor: (exchange: Exchange) => string | Buffer): Fault =>
  (exchange) => {
    const { socket } = exchange.response;
    socket?.end(textFor(exchange));
  };

const failing: Fault = ({ response, random, heard }) => {
  const status = random.pick([400, 401, 402, 403, 404, 408, 409, 413, 422, 429, 500, 502, 503, 504, 529]);
  const text = `Refused: ${heard}`;
  const type = random.pick([
    'invalid_request_error',
    'authentication_error',
    'rate_limit_error',
    'overloaded_error',
    'odd',
  ]);
  const body: unknown = random.pick<unknown>([
    { error: { message: text, type, param: null, code: random.pick([null, 'context_length_exceeded', 'odd', 7]) } },
    { type: 'error', error: { type, message: text } },
    { error: { code: status, message: text, status: 'INVALID_ARGUMENT', details: [{ reason: text }] } },
    { error: text },
    { detail: [{ msg: text }] },
    { message: text },
    [text],
    text,
  ]);
  const after = random.pick(['', '0', '1', '-1', '99999999999', 'soon', 'Wed, 21 Oct 2099 07:28:00 GMT']);
  response.writeHead(status, {
    'content-type': random.pick(['application/json', 'text/html', 'odd']),
    ...(after === '' ? {} : { 'retry-after': after }),
  });
  response.end(JSON.stringify(body));
};

/** An error inside a success. */
const failingInside: Fault = (exchange) => {
  const { response, random, answer, heard } = exchange;
  const error = {
    type: random.pick(['error', 'odd']),
    error: { message: heard, type: random.pick(['api_error', 'overloaded_error', 'odd']), code: 'x' },
  };
  begin(exchange);
  if (answer.type === 'whole') return void response.end(JSON.stringify(error));
  const before = answer.events.slice(0, random.between(0, answer.events.length - 1));
  const last = { ...(random.chance(0.5) ? { event: 'error' } : {}), data: error };
  response.end(textOf({ type: 'events', events: [...before, last] }));
};

/** Says a beginning, and then hangs up or falls silent. */
const cut =
  (end: 'hangs up' | 'falls silent'): Fault =>
  async (exchange) => {
    const { response, random, answer } = exchange;
    const text = textOf(answer);
    begin(exchange, answer.type === 'whole' ? { 'content-length': String(text.length + 1) } : {});
    await write(response, text.slice(0, random.between(0, text.length)));
    if (end === 'hangs up') response.destroy();
  };

const piecewise: Fault = async (exchange) => {
  const { response, random, answer } = exchange;
  begin(exchange);
  const bytes = Buffer.from(textOf(answer));
  const size = random.pick([1, 1, 2, 7]);
  for (let start = 0; start < bytes.length && !isGone(response); start += size)
    response.write(bytes.subarray(start, start + size));
  response.end();
};

const slowly: Fault = async (exchange) => {
  const { response, random, answer } = exchange;
  begin(exchange);
  const text = textOf(answer);
  const pieces = random.between(2, 10);
  const size = Math.ceil(text.length / pieces);
  for (let start = 0; start < text.length && !isGone(response); start += size) {
    await write(response, text.slice(start, start + size));
    await sleep(random.between(1, 150));
  }
  response.end();
};

const commented: Fault = (exchange) => {
  begin(exchange, { 'content-type': 'text/event-stream' });
  const text = textOf(exchange.answer).replaceAll(
    '\n\n',
    `\n\n: ${'c'.repeat(exchange.random.between(0, 2000))}\n\nid: 7\nretry: 0\n\n`,
  );
  exchange.response.end(exchange.random.chance(0.5) ? text.replaceAll('\n', '\r\n') : `\ufeff${text}`);
};

const informed: Fault = async (exchange) => {
  const { response, random } = exchange;
  for (let time = random.between(1, 20); time > 0; time -= 1) {
    if (random.chance(0.5)) response.writeProcessing();
    else response.writeEarlyHints({ link: '</x>; rel=preload' });
  }
  await good(exchange);
};

const withTrailers: Fault = (exchange) => {
  const { response, answer } = exchange;
  response.writeHead(200, { 'content-type': typeOf(answer), trailer: 'x-late', 'transfer-encoding': 'chunked' });
  response.write(textOf(answer));
  response.addTrailers({ 'x-late': 'yes', 'content-length': '0' });
  response.end();
};

const withOddHeaders: Fault = (exchange) => {
  const { heard, random, answer } = exchange;
  const odd = random.pick<Readonly<Record<string, string>>>([
    {
      'x-request-id': 'forged',
      'x-decision-id': 'forged',
      'set-cookie': 'a=b',
      'x-echo': heard.replace(/[^ -~]/g, '').slice(0, 2000),
    },
    { 'content-type': `${typeOf(answer)}; charset=utf-7` },
    { 'content-type': answer.type === 'events' ? 'application/json' : 'text/event-stream' },
    { 'content-type': 'TEXT/HTML' },
    { 'content-encoding': 'gzip' },
    { location: 'http://169.254.169.254/', refresh: '0' },
    { 'access-control-allow-origin': '*', 'retry-after': '1', 'x-should-retry': 'true' },
  ]);
  begin(exchange, odd);
  exchange.response.end(textOf(answer));
};

const redirecting: Fault = ({ response, random }) => {
  const location = random.pick([
    'http://169.254.169.254/latest/meta-data',
    'http://127.0.0.1:1/',
    'file:///etc/passwd',
    '//evil.example/',
  ]);
  response.writeHead(random.pick([301, 302, 307, 308]), { location });
  response.end();
};

/** The good text, as a server of HTTP/1.1 must not say it. */
const malformed = sayRaw(({ random, answer }) => {
  const text = textOf(answer);
  const head = `HTTP/1.1 200 OK\r\ncontent-type: ${typeOf(answer)}\r\n`;
  return random.pick([
    `${head}content-length: 5\r\ncontent-length: 6\r\n\r\n${text}`,
    `${head}content-length: ${text.length}\r\ntransfer-encoding: chunked\r\n\r\n${text}`,
    `${head}transfer-encoding: chunked\r\n\r\nzz\r\n${text}\r\n0\r\n\r\n`,
    `${head}transfer-encoding: chunked\r\n\r\nffffffffffffffff\r\n${text}`,
    `${head}transfer-encoding: chunked\r\n\r\n${text.length.toString(16)};${'e'.repeat(20_000)}\r\n${text}\r\n0\r\n\r\n`,
    `${head}content-length: -1\r\n\r\n${text}`,
    `${head}content-length: ${text.length}\r\n\r\n${text}HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}`,
    `${head}x: a\r\n b\r\nbad header\r\n\r\n${text}`,
    `${head}x: \u0000\r\n\r\n${text}`,
    `HTTP/1.1 200 \r\n\r\n${text}`,
    `HTTP/1.0 200 OK\r\n\r\n${text}`,
    `HTTP/1.1 999 Odd\r\n\r\n${text}`,
    `HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n${text}`,
    `HTTP/1.1 204 None\r\n\r\n${text}`,
    `HTTP/2 200\r\n\r\n${text}`,
    `${head}\r\n${text}`,
    'SSH-2.0-OpenSSH_9.9\r\n',
    '\u0000'.repeat(1000),
    '',
  ]);
});

/** They say no more, and charge no more, than the good answer. */
export const HONEST = {
  failing,
  'failing inside': failingInside,
  'hanging up': ({ response }: Exchange) => void response.destroy(),
  silent: () => undefined,
  'cut off': cut('hangs up'),
  stalled: cut('falls silent'),
  piecewise,
  slowly,
  commented,
  informed,
  'with trailers': withTrailers,
  'with odd headers': withOddHeaders,
  redirecting,
  malformed,
  empty: say(() => ''),
} satisfies Record<string, Fault>;

/** Each value in the answer, or in one of its events, may be another. */
function mutated({ random, answer }: Exchange): string {
  if (answer.type === 'whole') return written(mutate(random, structuredClone(answer.body)));
  const events = answer.events.map(({ event, data }) => ({
    ...(event === undefined ? {} : { event }),
    data: typeof data === 'string' || random.chance(0.5) ? data : mutate(random, structuredClone(data), 1),
  }));
  if (random.chance(0.2)) events.reverse();
  if (random.chance(0.2)) events.splice(random.between(0, events.length - 1), 1);
  if (random.chance(0.2)) events.push(...events);
  return textOf({ type: 'events', events }, written);
}

const COUNTS =
  /"((?:prompt|completion|total|input|output|cached|reasoning|candidates|thoughts)_?\w*(?:tokens|TokenCount))":\d+/g;

/** Counts that are wrong, in number or in kind. */
const miscounted = ({ random, answer }: Exchange): string =>
  textOf(answer).replace(COUNTS, (_, name: string) => {
    const count = random.pick<unknown>([
      0,
      -1,
      1.5,
      2 ** 31,
      2 ** 53,
      1e15,
      1e300,
      1_000_000,
      '5',
      null,
      true,
      {},
      [5],
      oddValue(random),
    ]);
    return `"${name}":${written(count)}`;
  });

/** Tool calls in an order and of numbers that no client expects. */
function misordered({ random, answer }: Exchange): string {
  const call = (index: unknown, fields: object): object => ({
    id: 'c',
    object: 'chat.completion.chunk',
    choices: [{ index: 0, delta: { tool_calls: [{ index, ...fields }] }, finish_reason: null }],
  });
  const events = Array.from({ length: random.between(1, 50) }, () => ({
    data: call(
      random.pick([0, 1, 5, -1, 1e9, 1.5, '0', null]),
      random.pick<object>([
        { function: { arguments: '{"a"' } },
        { id: 'call_1', type: 'function', function: { name: 'weather', arguments: '' } },
        { id: 'call_1', type: 'odd' },
        { function: null },
        {},
      ]),
    ),
  }));
  return textOf({ type: 'events', events }) + textOf(answer);
}

const manyChoices = ({ random, answer }: Exchange): string => {
  const count = random.pick([9, 129, 2000]);
  const choice = (index: number): object => ({
    index,
    message: { role: 'assistant', content: 'x' },
    delta: { content: 'x' },
    finish_reason: 'stop',
  });
  const body = { object: 'chat.completion', choices: Array.from({ length: count }, (_, index) => choice(index)) };
  return answer.type === 'whole'
    ? JSON.stringify(body)
    : textOf({ type: 'events', events: [{ data: body }, ...answer.events] });
};

/** They may say or charge more than was asked for. */
export const LYING = {
  mutated: say(mutated),
  miscounted: say(miscounted),
  misordered: say(misordered),
  'of many choices': say(manyChoices),
} satisfies Record<string, Fault>;

const MEGABYTE = 1_000_000;
const filler = (random: Random): number => random.pick([1, 5, 20]) * MEGABYTE;

/** Puts a long text of JSON where the answer has its words. */
const swollen =
  (long: (random: Random) => string): Fault =>
  (exchange) => {
    const { response, random, answer } = exchange;
    begin(exchange);
    response.end(
      textOf(answer).replace(/"(content|text|candidates|choices)":/, (field) => `${field}${long(random)},"x":`),
    );
  };

const repeated = (random: Random, unit: string): string =>
  `[${`${unit},`.repeat(Math.floor(filler(random) / (unit.length + 1)))}0]`;

const endless =
  (again: (random: Random) => string): Fault =>
  async (exchange) => {
    const { response, random, answer } = exchange;
    begin(exchange, { 'content-type': random.chance(0.8) ? 'text/event-stream' : typeOf(answer) });
    const text = again(random);
    while (!isGone(response)) await write(response, text);
  };

const inManyPieces: Fault = async (exchange) => {
  const { response, answer } = exchange;
  begin(exchange);
  const text = Buffer.from(`${' '.repeat(MEGABYTE)}${textOf(answer)}`);
  for (let start = 0; start < text.length && !isGone(response); start += 1) {
    const taken = response.write(text.subarray(start, start + 1));
    if (!taken) await drained(response);
  }
  response.end();
};

/** They take the product's memory or time. */
export const LARGE = {
  'a long text': swollen((random) => `"${'x'.repeat(filler(random))}"`),
  'many objects': swollen((random) => repeated(random, '{}')),
  'many lists': swollen((random) => repeated(random, '[]')),
  'many numbers': swollen((random) => repeated(random, '0')),
  'deep lists': swollen((random) => `${'['.repeat(filler(random) / 10)}${']'.repeat(filler(random) / 10)}`),
  'endless comments': endless((random) => `:${'c'.repeat(random.pick([0, 100, 60_000]))}\n`),
  'endless blanks': endless(() => ' '.repeat(60_000)),
  'endless line': endless(() => `data: ${'x'.repeat(60_000)}`),
  'endless events': endless(() => `data: {"choices":[{"index":0,"delta":{"content":"x"}}]}\n\n`.repeat(1000)),
  'endless data lines': endless(() => 'data:\n'.repeat(10_000)),
  'in many pieces': inManyPieces,
  'many headers': sayRaw(({ random }) => {
    const headers = Array.from(
      { length: random.pick([100, 2000, 20_000]) },
      (_, at) => `x-${at}: ${'v'.repeat(random.between(1, 50))}\r\n`,
    );
    return `HTTP/1.1 200 OK\r\n${headers.join('')}content-length: 2\r\n\r\n{}`;
  }),
  'one long header': sayRaw(
    ({ random }) =>
      `HTTP/1.1 200 OK\r\nx: ${'v'.repeat(random.pick([10_000, 100_000, MEGABYTE]))}\r\ncontent-length: 2\r\n\r\n{}`,
  ),
} satisfies Record<string, Fault>;

export const FAULTS: Readonly<Record<string, Fault>> = { ...HONEST, ...LYING, ...LARGE };
