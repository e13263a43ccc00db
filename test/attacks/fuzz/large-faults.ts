// Upstreams whose answers take the gateway's memory or time. No key whose cap is checked meets them.
import type { Random } from '../../crash/random.ts';
import { textOf } from './answers.ts';
import { drained } from './drained.ts';
import { begin, type Fault, isGone, sayRaw, typeOf, write } from './exchange.ts';

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
