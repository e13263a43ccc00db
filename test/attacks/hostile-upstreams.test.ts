// An upstream, any server that a customer may register, stops, slows or ends the gateway with its answer.
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AttackedGateway, type Summary, startAttackedGateway } from '../support/attacked-gateway.ts';
import { type FaultServer, startFaultServer } from '../support/fault-server.ts';
import {
  crumbs,
  ENDING,
  emptyObjects,
  event,
  MB,
  NO_ANSWERS,
  PICTURE,
  picturePart,
  STREAMS,
  stream,
  WHOLE,
  whole,
  withJunk,
} from '../support/hostile-replies.ts';
import { chunk, completion, json, startUpstream, type TestUpstream, upstreamEnv } from '../support/upstream.ts';

let hostile: FaultServer;
let healthy: TestUpstream;
let gateway: AttackedGateway;

beforeAll(async () => {
  hostile = await startFaultServer();
  healthy = await startUpstream();
  healthy.begin(json(completion('From the second')));
  const models = 'large,shared,sandbox-image-plus,sandbox-moderation';
  const prices = 'large=2/8,shared=1/1,sandbox-image-plus=1/1,sandbox-moderation=0/0';
  gateway = await startAttackedGateway({
    ...upstreamEnv('acme', hostile.origin, models, prices),
    ...upstreamEnv('zeta', healthy.origin, 'shared', 'shared=2/2'),
    MODERATION_MODEL: 'acme/sandbox-moderation',
    ANTHROPIC_BASE_URL: hostile.origin,
    ANTHROPIC_API_KEY: 'key',
    GOOGLE_BASE_URL: hostile.origin,
    GOOGLE_API_KEY: 'key',
    OPENAI_BASE_URL: `${hostile.origin}/v1`,
    OPENAI_API_KEY: 'key',
  });
});

afterAll(async () => {
  await gateway.close();
  await hostile.close();
  await healthy.close();
});

/** Each answer of the upstream from now on. */
function answer(bytes: () => string): void {
  const reply = Buffer.from(bytes());
  hostile.begin(({ write }) => write(reply));
}

const chat = (more: object = {}): object => ({
  model: 'acme/large',
  messages: [{ role: 'user', content: 'Hello' }],
  ...more,
});
const completeChats = (more: object = {}, times = 4) => gateway.ask('/v1/chat/completions', chat(more), times);

const streamedImage = { model: 'openai/gpt-image-2', prompt: 'a fox', stream: true, partial_images: 1 };

/** The error that an answer is or ends with. */
function messageOf({ text }: Summary): string {
  const message = /"error":\{"message":"([^"]*)"/.exec(text)?.[1];
  return message ?? `no error: ${text}`;
}

/** Several such calls at once: how they end, and that another caller was served meanwhile, each time within a second. */
async function expectRefused(attack: () => Promise<Summary[]>, message: string): Promise<void> {
  const { value: ended, longestMs } = await gateway.during(attack);

  expect([...new Set(ended.map(messageOf))]).toEqual([message]);
  expect(longestMs).toBeLessThan(1000);
}

async function expectServed(attack: () => Promise<Summary[]>, leastBytes: number): Promise<void> {
  const { value: ended, longestMs } = await gateway.during(attack);

  expect(ended.map(({ status, text }) => [status, text.includes('"error":')])).toEqual(ended.map(() => [200, false]));
  for (const { bytes } of ended) expect(bytes).toBeGreaterThan(leastBytes);
  expect(longestMs).toBeLessThan(1000);
}

describe('what is never an answer is cut off, and a second caller is served meanwhile', () => {
  it.each(NO_ANSWERS)('%s without end', async (_name, bytes) => {
    answer(bytes);

    await expectRefused(
      () => completeChats(),
      'The answer of the provider was refused: the answer is not well-formed HTTP.',
    );
  });
});

describe('a whole answer that would stop its parser is a 502, and a second caller is served meanwhile', () => {
  it.each(WHOLE)('%s', async (_name, bytes, message) => {
    answer(bytes);

    await expectRefused(() => completeChats(), message);
  });

  it.each([
    ['images', '/v1/images/generations', { model: 'acme/sandbox-image-plus', prompt: 'a fox' }],
    ['moderations', '/v1/moderations', { input: 'a' }],
    ["chats on Anthropic's wire", '/v1/chat/completions', chat({ model: 'anthropic/claude-haiku-4-5' })],
    ["chats on Google's wire", '/v1/chat/completions', chat({ model: 'google/gemini-3-flash-preview' })],
  ])('five million empty objects as an answer to %s', async (_name, path, body) => {
    answer(() => whole(`{"data":${emptyObjects(5_000_000)}}`));

    await expectRefused(
      () => gateway.ask(path, body, 4),
      'The answer of the provider was refused: the answer holds too much.',
    );
  });
});

describe('a stream that would keep its reader busy is ended, and a second caller is served meanwhile', () => {
  it.each(STREAMS)('%s', async (_name, bytes, message) => {
    answer(bytes);

    await expectRefused(() => completeChats({ stream: true }, 2), message);
  });

  it.each([
    ["Anthropic's", 'anthropic/claude-haiku-4-5'],
    ["Google's", 'google/gemini-3-flash-preview'],
  ])('an event of a million levels on the wire of %s', async (_name, model) => {
    answer(() => stream(event(`${'['.repeat(4 * MB)}${']'.repeat(4 * MB)}`)));

    await expectRefused(
      () => completeChats({ model, stream: true }),
      'The answer of the provider was refused: an event of the stream is too large.',
    );
  });
});

describe('a stream of an image that would keep its reader busy is ended, and a second caller is served meanwhile', () => {
  it.each(STREAMS.filter(([, , message]) => message.includes('refused')))('%s', async (_name, bytes, message) => {
    answer(bytes);

    await expectRefused(() => gateway.ask('/v1/images/generations', streamedImage, 2), message);
  });
});

describe('an answer that is only large reaches its caller whole, and a second caller is served meanwhile', () => {
  it('a text of ten megabytes', async () => {
    answer(() => whole(completion('word '.repeat(2 * MB))));

    await expectServed(() => completeChats(), 10 * MB);
  });

  it('a million values', async () => {
    answer(() => whole(withJunk(completion('x'), emptyObjects(990_000))));

    await expectServed(() => completeChats(), 990_000 * 3);
  });

  it('a picture of ten megabytes', async () => {
    answer(() => whole({ created: 1, data: [{ b64_json: PICTURE }] }));

    const body = { model: 'acme/sandbox-image-plus', prompt: 'a fox' };
    await expectServed(() => gateway.ask('/v1/images/generations', body, 4), PICTURE.length);
  });

  it('pictures of ten megabytes for a caller who asked for a stream', async () => {
    answer(() =>
      whole({ created: 1, data: [{ b64_json: PICTURE.slice(0, 7 * MB) }, { b64_json: PICTURE.slice(0, 4) }] }),
    );

    const body = { ...streamedImage, model: 'acme/sandbox-image-plus', n: 2 };
    await expectServed(() => gateway.ask('/v1/images/generations', body, 4), 7 * MB);
  });

  it('a picture of ten megabytes in one event of a stream of an image', async () => {
    answer(() => stream(event({ type: 'image_generation.completed', b64_json: PICTURE })));

    await expectServed(() => gateway.ask('/v1/images/generations', streamedImage, 4), PICTURE.length);
  });

  it('a picture of ten megabytes in one event of a stream', async () => {
    answer(() => stream(event(chunk({ content: 'Here', images: [picturePart] })), ...ENDING));

    await expectServed(() => completeChats({ stream: true }), PICTURE.length);
  });

  it('100,000 tokens, a piece each', async () => {
    const token = event(chunk({ content: 'x' }));
    answer(() => stream(...Array.from({ length: 100 }, () => token.repeat(1000)), ...ENDING));

    await expectServed(() => completeChats({ stream: true }, 2), 100_000 * 50);
  });

  it('300,000 fragments of tool calls that each belong to the first of a thousand', async () => {
    const begun = Array.from({ length: 1024 }, (_, index) => ({ index, id: `call_${index}`, function: { name: 'f' } }));
    const fragments = Array.from({ length: 1000 }, () => ({ index: 0, function: { arguments: 'x' } }));
    const events = Array.from({ length: 300 }, () => event(chunk({ tool_calls: fragments })));
    answer(() => stream(event(chunk({ tool_calls: begun })), ...events, ...ENDING));

    await expectServed(() => completeChats({ stream: true }, 2), 300_000 * 20);
  });

  it('usage beyond any number that can be booked', async () => {
    const most = Number.MAX_SAFE_INTEGER;
    answer(() => whole(completion('Hello', { usage: { prompt_tokens: most, completion_tokens: most } })));

    await expectServed(() => completeChats(), 500);
  });
});

it('pictures of the sandbox are drawn next to the serving thread', async () => {
  const body = { model: 'sandbox-image-max', prompt: 'a fox', size: '2048x2048', n: 5 };

  await expectServed(() => gateway.ask('/v1/images/generations', body, 2), 500_000);
});

it('a hostile answer is failed over, as any other that is none', async () => {
  answer(() => whole(withJunk(completion('From the first'), emptyObjects(5_000_000))));

  const [served] = await completeChats({ model: 'shared' }, 1);

  expect(served?.status).toBe(200);
  expect(served?.text).toContain('From the second');
  expect(served?.text).toContain('"error_type":"bad_response"');
});

describe('answers that are more than there is room for', () => {
  let small: AttackedGateway;

  beforeAll(async () => {
    small = await startAttackedGateway({
      ...upstreamEnv('acme', hostile.origin, 'large', 'large=2/8'),
      MAX_BUFFERED_BYTES: String(96 * MB),
    });
  });

  afterAll(() => small.close());

  const complete = (more: object, times: number) => small.ask('/v1/chat/completions', chat(more), times);

  it('are 503, a second caller is served meanwhile, and the room is given back', async () => {
    answer(() => whole(completion('x'.repeat(15 * MB))));

    const { value: ended, longestMs } = await small.during(() => complete({}, 24));

    const refused = ended.filter(({ status }) => status !== 200);
    expect(new Set(refused.map(messageOf))).toEqual(new Set(['The gateway is overloaded. Try again shortly.']));
    expect(longestMs).toBeLessThan(1000);
    expect((await complete({}, 1))[0]?.status).toBe(200);
  });

  it('are 503 also when they stop in the midst of a large event of a stream', async () => {
    const begun = Buffer.from(
      `${crumbs('text/event-stream', '\n', 1)}${(8 * MB).toString(16)}\r\ndata: ${'x'.repeat(8 * MB)}`,
    );
    hostile.begin(async ({ write, reset }) => {
      await write(begun);
      await sleep(2000);
      reset();
    });

    const { value: ended } = await small.during(() => complete({ stream: true }, 24));

    expect(new Set(ended.map(messageOf))).toContain('The gateway is overloaded. Try again shortly.');
  });
});

it('after all of it the gateway works, in bounded memory', async () => {
  answer(() => whole(completion('Hello')));

  expect((await completeChats({}, 1))[0]?.status).toBe(200);
  expect(gateway.process.child.exitCode).toBeNull();
  expect(gateway.peakMb() ?? 0).toBeLessThan(1536);
});
