// Upstreams that fail without lying: they say no more, and charge no more, than the good answer would.
import { setTimeout as sleep } from 'node:timers/promises';
import { textOf } from './answers.ts';
import { begin, type Exchange, type Fault, good, isGone, say, sayRaw, typeOf, write } from './exchange.ts';

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
