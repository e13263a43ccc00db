// POST /v1/chat/completions: an upstream that nests its answer deeper than can be written down again.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { chat, errorOf, eventsOf, hello } from '../../support/chat.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import { callRow } from '../../support/rows.ts';
import {
  chunk,
  completion,
  events,
  json,
  startUpstream,
  type TestUpstream,
  upstreamEnv,
} from '../../support/upstream.ts';

let upstream: TestUpstream;
let gateway: TestGateway;

beforeAll(async () => {
  upstream = await startUpstream();
  gateway = await startGateway(upstreamEnv('acme', upstream.origin, 'large', 'large=2/8'));
});

afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

/** Numbers as names take the way of `JSON.stringify` that calls itself. */
const nested = (depth: number): string => `${'{"0":'.repeat(depth)}1${'}'.repeat(depth)}`;

/** JSON text of a value with one more field, `deep`. */
const withField = (value: object, depth: number): string =>
  JSON.stringify(value).replace('{', `{"deep":${nested(depth)},`);

it.each([1000, 20_000])('%i levels in a whole answer are a 502, recorded as such', async (depth) => {
  upstream.begin(json(withField(completion('Hello'), depth)));

  const answer = await chat(gateway, hello({ model: 'large' }));

  expect([answer.status, errorOf(answer).message]).toEqual([
    502,
    'The answer of the provider was refused: the answer holds too much.',
  ]);
  const { state, statusCode, errorCode } = callRow(gateway, answer);
  expect([state, statusCode, errorCode]).toEqual(['settled', 502, 'upstream_error']);
});

it('in the first chunk of a stream they are a 502 too', async () => {
  upstream.begin(events(withField(chunk({ content: 'Hello' }), 20_000), chunk({}, 'stop')));

  const answer = await chat(gateway, hello({ model: 'large', stream: true }));

  expect([answer.status, errorOf(answer).message]).toEqual([502, 'The provider sent a malformed chunk.']);
});

it('in a later chunk they are an error event', async () => {
  upstream.begin(events(chunk({ content: 'Hello' }), withField(chunk({ content: '!' }), 20_000), chunk({}, 'stop')));

  const answer = await chat(gateway, hello({ model: 'large', stream: true }));

  const { chunks, error, done } = eventsOf(answer.text);
  expect([chunks.length, error?.code, error?.message, done]).toEqual([
    1,
    'upstream_error',
    'The provider sent a malformed chunk.',
    false,
  ]);
  expect(callRow(gateway, answer)).toMatchObject({ state: 'settled', statusCode: 502 });
});

it('a thousand levels pass as they came', async () => {
  // The answer itself is the first level.
  upstream.begin(json(withField(completion('Hello'), 999)));

  const answer = await chat(gateway, hello({ model: 'large' }));

  expect(answer.status).toBe(200);
  expect(answer.text).toContain(nested(999));
});
