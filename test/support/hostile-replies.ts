// Answers by which an upstream would stop, slow or end its reader, as bytes.
import { head, JSON_HEAD, LAST_PIECE, piece } from './fault-replies.ts';
import { chunk, completion } from './upstream.ts';

export const MB = 1024 * 1024;

const EVENTS_HEAD = { 'content-type': 'text/event-stream', 'transfer-encoding': 'chunked' };

/** A whole answer with its length. */
export const whole = (body: string | object, status = '200 OK'): string => {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return `${head(status, { ...JSON_HEAD, 'content-length': Buffer.byteLength(text) })}${text}`;
};

/** A stream of these texts, a piece each. */
export const stream = (...texts: string[]): string =>
  `${head('200 OK', EVENTS_HEAD)}${texts.map(piece).join('')}${LAST_PIECE}`;

/** Pieces of one byte. */
export const crumbs = (type: string, text: string, count: number): string =>
  `${head('200 OK', { 'content-type': type, 'transfer-encoding': 'chunked' })}${piece(text).repeat(count)}`;

export const event = (data: object | string): string =>
  `data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`;

export const ENDING = [event(chunk({}, 'stop')), event('[DONE]')];

/** JSON with so many empty objects in a field, or in place of a value that says `HERE`. */
export const emptyObjects = (count: number): string => `[${'{},'.repeat(count - 1)}{}]`;
export const withJunk = (value: object, junk: string): string =>
  JSON.stringify({ ...value, junk: 'HERE' }).replace('"HERE"', () => junk);

export const PICTURE = 'QUJD'.repeat((10 * MB) / 4);
export const picturePart = { type: 'image_url', image_url: { url: `data:image/png;base64,${PICTURE}` } };

const many = (text: string, bytes = 4 * MB): string => text.repeat(bytes / text.length);
const CHUNKED = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n';

/** What is no answer yet, without end. */
export const NO_ANSWERS: readonly (readonly [string, () => string])[] = [
  ['a status line', () => `HTTP/1.1 200 ${many('x')}`],
  ['headers', () => `${CHUNKED}${many('a: b\r\n')}`],
  ['one header', () => `${CHUNKED}a: ${many('x')}`],
  ['interim answers', () => many('HTTP/1.1 102 Processing\r\n\r\n')],
  ['the extension of a chunk', () => `${CHUNKED}\r\n1;${many('x')}`],
  ['trailers', () => `${CHUNKED}\r\n1\r\n{\r\n0\r\n${many('a: b\r\n')}`],
];

const choices = (message: string): string => `{"choices":[{"message":${message}}]}`;
const calls = (count: number): string => choices(`{"content":"","tool_calls":${emptyObjects(count)}}`);
const TOO_MUCH = 'The answer of the provider was refused: the answer holds too much.';
const TOO_LARGE = 'The answer of the provider was refused: the answer is too large.';

/** Fields that throw when a text is made of them. */
const NO_WORDS = '{"error":[{"msg":"x","loc":[{"toString":1}]}],"status":{"toString":1},"code":{"valueOf":null}}';

/** Whole answers that are refused, with what the caller reads. */
export const WHOLE: readonly (readonly [string, () => string, string])[] = [
  ['five million empty objects', () => whole(withJunk(completion('x'), emptyObjects(5_000_000))), TOO_MUCH],
  ['a million fields', () => whole(`{${Array.from({ length: 900_000 }, (_, n) => `"k${n}":0`)}}`), TOO_MUCH],
  ['a million levels', () => whole(`${'{"a":'.repeat(MB)}1${'}'.repeat(MB)}`), TOO_MUCH],
  ['100,000 choices', () => whole(`{"choices":${emptyObjects(100_000)}}`), 'The provider sent too many choices.'],
  ['100,000 tool calls', () => whole(calls(100_000)), 'The provider sent too many tool calls.'],
  ['17 megabytes', () => whole(completion('x'.repeat(17 * MB))), TOO_LARGE],
  ['a million pieces of one byte', () => crumbs('application/json', ' ', 1_000_000), TOO_LARGE],
  ['words that are objects', () => whole(NO_WORDS), 'The provider reported an error inside a successful answer.'],
  [
    'words that are objects in a failure',
    () => whole(NO_WORDS, '422 Unprocessable Content'),
    'The provider rejected the request: x',
  ],
  [
    'a failure of 15 megabytes',
    () => whole({ error: { message: 'x'.repeat(15 * MB) } }, '500 Internal Server Error'),
    'The provider failed: status 500',
  ],
];

const LINES = 'The answer of the provider was refused: the stream has too many lines.';
const EVENT = 'The answer of the provider was refused: an event of the stream is too large.';

/** Streams that are refused, some of them after something was said. */
export const STREAMS: readonly (readonly [string, () => string, string])[] = [
  ['comments', () => stream(...Array.from({ length: 70 }, () => ': x\n'.repeat(16_384))), LINES],
  ['empty lines', () => stream(...Array.from({ length: 20 }, () => '\n'.repeat(65_536))), LINES],
  ['events that say nothing', () => stream(...Array.from({ length: 80 }, () => event('{}').repeat(6500))), LINES],
  [
    'words that are objects',
    () => stream(event(NO_WORDS)),
    'The provider reported an error inside a successful answer.',
  ],
  ['a line of 17 megabytes', () => stream(`data: ${'x'.repeat(17 * MB)}`), EVENT],
  [
    'an event of five million empty objects',
    () => stream(event(withJunk(chunk({ content: 'x' }), emptyObjects(5_000_000)))),
    EVENT,
  ],
  ['a million pieces of one byte', () => crumbs('text/event-stream', ':', 1_000_000), TOO_LARGE],
];
