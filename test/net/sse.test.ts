import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type LargeSseEvent, type SseEvent, SseParser } from '../../src/net/event-stream.ts';

const LIMIT = 10_000;

function parse(text: string | Buffer, size = Number.POSITIVE_INFINITY): (SseEvent | LargeSseEvent)[] {
  const bytes = Buffer.from(text);
  const parser = new SseParser(LIMIT);
  const events: (SseEvent | LargeSseEvent)[] = [];
  for (let start = 0; start < bytes.length; start += size)
    events.push(...parser.push(bytes.subarray(start, start + size)));
  return events;
}

const SAMPLE =
  '\uFEFF: hello\ndata: {"a":"grüße 🚪"}\r\n\r\nevent: error\rdata:1\rdata: 2\r\rid: 7\nretry: 1\ndata\n\ndata: [DONE]\n\n';

const SAMPLE_EVENTS: SseEvent[] = [
  { data: '{"a":"grüße 🚪"}' },
  { event: 'error', data: '1\n2' },
  { data: '' },
  { data: '[DONE]' },
];

describe('SseParser', () => {
  it('knows comments, all line ends, several data lines, names, fields without a value and the byte order mark', () => {
    expect(parse(SAMPLE)).toEqual(SAMPLE_EVENTS);
  });

  it('gives the same events however the bytes are split', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 40 }), (size) => {
        expect(parse(SAMPLE, size)).toEqual(SAMPLE_EVENTS);
      }),
    );
  });

  it('gives an event as soon as its blank line is there', () => {
    const parser = new SseParser(LIMIT);
    expect(parser.push(Buffer.from('data: 1\n'))).toEqual([]);
    expect(parser.push(Buffer.from('\n'))).toEqual([{ data: '1' }]);
  });

  it('takes one space after the colon away, and no more', () => {
    expect(parse('data:  x \n\n')).toEqual([{ data: ' x ' }]);
  });

  it('drops an event without data, with its name, and one that the end cuts off', () => {
    expect(parse('event: ping\n\ndata: 1\n\ndata: 2\n')).toEqual([{ data: '1' }]);
  });

  it.each([
    ['one line', 'x'.repeat(LIMIT + 1)],
    ['one line that ends', `data: ${'x'.repeat(LIMIT)}\n\n`],
    ['many data lines', 'data: 123456789\n'.repeat(LIMIT / 10 + 1)],
  ])('refuses an event too large in %s', (_name, text) => {
    expect(() => parse(text, 1000)).toThrow(expect.objectContaining({ kind: 'too_large' }));
  });

  it('bounds each event, not the stream', () => {
    const events = parse('data: 123456789\n\n'.repeat(LIMIT), 1000);
    expect(events.length).toBe(LIMIT);
  });

  it.each([
    ['empty lines', '\n'],
    ['comments', ':\n'],
    ['events', 'data\n\n'],
  ])('refuses a stream of more than a million lines: %s', (_name, line) => {
    const parser = new SseParser(LIMIT);
    const chunk = Buffer.from(line.repeat(10_000));
    const pushAll = () => {
      for (let count = 0; count <= 100; count += 1) parser.push(chunk);
    };
    expect(pushAll).toThrow(expect.objectContaining({ kind: 'too_large' }));
  });

  it('refuses an event of more than ten thousand lines of data', () => {
    expect(() => parse('data\n'.repeat(10_001))).toThrow(expect.objectContaining({ kind: 'too_large' }));
  });
});

describe('an event of more than 64 KiB', () => {
  const LARGE = 1 << 20;
  const long = `{"a":"${'grüße '.repeat(20_000)}"}`;

  /** Events with their data as text. */
  function texts(stream: string, size: number): object[] {
    const bytes = Buffer.from(stream);
    const parser = new SseParser(LARGE);
    const events: object[] = [];
    for (let start = 0; start < bytes.length; start += size) {
      for (const { event, ...rest } of parser.push(bytes.subarray(start, start + size))) {
        const isLarge = 'bytes' in rest;
        events.push({ ...(event && { event }), isLarge, data: isLarge ? rest.bytes.toString() : rest.data });
      }
    }
    return events;
  }

  it.each([7, 1000, 65_536])('is not decoded, also when it comes in pieces of %i bytes', (size) => {
    const stream = `data: 1\n\nevent: e\ndata: ${long}\ndata:2\r\n\r\n: x\ndata: 3\n\ndata:${long}\r\rdata: 4\n\n`;

    expect(texts(stream, size)).toEqual([
      { isLarge: false, data: '1' },
      { event: 'e', isLarge: true, data: `${long}\n2` },
      { isLarge: false, data: '3' },
      { isLarge: true, data: long },
      { isLarge: false, data: '4' },
    ]);
  });

  it('may be the first, behind a byte order mark, and consist of short lines', () => {
    const lines = Array.from({ length: 100 }, () => 'x'.repeat(1000));

    expect(texts(`\uFEFFdata: ${long}\n\n${lines.map((line) => `data: ${line}\n`).join('')}\n`, 1000)).toEqual([
      { isLarge: true, data: long },
      { isLarge: true, data: lines.join('\n') },
    ]);
  });

  it('in a field that nobody knows, or in a comment, is left out', () => {
    expect(texts(`id: ${long}\n: ${long}\ndata: 1\n\n`, 1000)).toEqual([{ isLarge: false, data: '1' }]);
  });
});
