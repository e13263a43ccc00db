import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type LargeSseEvent, type SseEvent, SseParser } from '../../src/net/sse.ts';

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
});
