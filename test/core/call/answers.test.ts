// Answers that are read on another thread: the result is the same as here.
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { type AnswerKind, readAnswer } from '../../../src/core/provider-answer.ts';
import type { Target } from '../../../src/core/reach.ts';
import { type Answers, createAnswers } from '../../../src/core/target-exchange.ts';
import { overloaded } from '../../../src/domain/errors.ts';
import type { WireFormat } from '../../../src/domain/provider.ts';
import { gatheredResponse } from '../../../src/net/exchange.ts';
import { adapterFor } from '../../../src/providers/providers.ts';
import { UpstreamError } from '../../../src/providers/wire/upstream-error.ts';
import { mappingOf } from '../../providers/answers.ts';

const answers = createAnswers();

afterAll(() => answers.close());

const LIMITS = { signal: new AbortController().signal, share: 'org_1', room: () => {} };

const SECRET = 'the-secret-of-the-request';

const targetOf = (wire: WireFormat): Target => ({
  mapping: mappingOf('p'),
  provider: {
    id: 'p',
    wire,
    adapter: adapterFor(wire, ''),
    base: { origin: 'http://127.0.0.1:9', path: '' },
    addresses: 'trusted',
    namedFields: new Set(),
  },
  credential: { source: 'service', secret: SECRET },
});

const response = (body: string) => gatheredResponse(200, { 'x-header': 'y' }, Buffer.from(body));

const long = (text: string, length = 100_000): string => text.repeat(Math.ceil(length / text.length));
const SAID = 'grüße "quoted" \u2028 \ud83d\ude00 ';
const TEXT = long(SAID, 1_100_000);
const PICTURE = long('QUJD', 1_100_000);

const OPENAI = {
  id: 'x',
  model: 'm-2026',
  system_fingerprint: 'fp',
  choices: [
    {
      index: 0,
      message: { role: 'assistant', content: TEXT, images: [{ type: 'image_url', image_url: { url: PICTURE } }] },
      finish_reason: 'stop',
    },
  ],
};
const USAGE = { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 };
const CHAT: AnswerKind = { operation: 'chat' };
const IMAGE = {
  operation: 'image' as const,
  call: { request: { prompt: 'a fox' }, mapping: mappingOf('p', { prices: { per_image: 5n } }) },
};
const MODERATION: AnswerKind = {
  operation: 'moderation',
  call: { request: { input: ['a', 'b'] }, mapping: mappingOf('p') },
};
const verdict = { flagged: false, categories: { violence: false }, category_scores: { violence: 0 }, note: TEXT };

const READ: readonly [string, WireFormat, AnswerKind, object][] = [
  ["OpenAI's, with its usage", 'openai', CHAT, { ...OPENAI, usage: USAGE }],
  ["OpenAI's, to be estimated", 'openai', CHAT, OPENAI],
  ["OpenAI's pictures", 'openai', IMAGE, { created: 1, data: [{ b64_json: PICTURE, revised_prompt: 'a red fox' }] }],
  [
    "OpenAI's pictures for a stream",
    'openai',
    { ...IMAGE, call: { ...IMAGE.call, request: { prompt: 'two foxes', stream: true } } },
    { created: 1, type: 'theirs', size: '16x16', data: [{ b64_json: PICTURE }, { url: 'https://images.example/2' }] },
  ],
  ["OpenAI's verdicts", 'openai', MODERATION, { model: 'mod', results: [verdict, verdict] }],
  [
    "Anthropic's",
    'anthropic',
    CHAT,
    {
      model: 'claude',
      metadata: 'left out',
      container: { id: 'c' },
      content: [{ type: 'text', text: TEXT }],
      stop_reason: 'end_turn',
      usage: { input_tokens: 5, output_tokens: 6 },
    },
  ],
  [
    "Google's, with a picture",
    'google',
    CHAT,
    {
      candidates: [
        { content: { parts: [{ text: 'Here' }, { inlineData: { mimeType: 'image/png', data: PICTURE } }] } },
      ],
      usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 2 },
    },
  ],
];

/** Read where it arrives, as a short answer is. */
function readHere(wire: WireFormat, kind: AnswerKind, body: string): unknown {
  const { json, ...told } = readAnswer(adapterFor(wire, ''), kind, response(body), SECRET);
  return { ...told, json: json.map((each) => JSON.parse(each)) };
}

function failureOf(act: () => unknown): unknown {
  try {
    return act();
  } catch (error) {
    return error;
  }
}

async function readThere(
  wire: WireFormat,
  kind: AnswerKind,
  body: string,
  by: Answers = answers,
  limits = LIMITS,
): Promise<unknown> {
  const { json, ...told } = await by.read(targetOf(wire), kind, response(body), limits);
  const read = json.map((each) => {
    if (typeof each === 'string') throw new Error('it was read on this thread');
    return JSON.parse(Buffer.from(each).toString());
  });
  return { ...told, json: read };
}

describe('a whole answer of more than a megabyte', () => {
  it.each(READ)('is read elsewhere as it would be here: %s', async (_name, wire, kind, answer) => {
    const body = JSON.stringify(answer);

    expect(await readThere(wire, kind, body)).toEqual(readHere(wire, kind, body));
  });

  it.each<[string, string, object]>([
    ['no JSON', `{"choices":[${long(' ', 1_100_000)}`, { errorType: 'bad_response', retryable: true }],
    [
      'of too many choices',
      `{"choices":[${'{},'.repeat(100_000)}{}]}`,
      { message: 'The provider sent too many choices.' },
    ],
    [
      'of too many tool calls',
      `{"choices":[{"message":{"tool_calls":[${'{},'.repeat(100_000)}{}]}}]}`,
      { message: 'The provider sent too many tool calls.' },
    ],
    [
      'an error about money',
      `{"error":{"code":"insufficient_quota","message":"${TEXT.replaceAll('"', '')}"}}`,
      { errorType: 'credential', status: 402, retryable: true },
    ],
    [
      'a rejection that repeats the secret of the request',
      `{"error":{"status":400,"code":"invalid_value","param":"n","message":"not ${SECRET}"},"x":"${PICTURE}"}`,
      { errorType: 'rejected', status: 400, code: 'invalid_value', param: 'n', retryable: false },
    ],
  ])('fails as it would here: %s', async (_name, body, wanted) => {
    const here = failureOf(() => readHere('openai', CHAT, body));
    const there = await readThere('openai', CHAT, body).catch((error: unknown) => error);

    expect(here).toMatchObject(wanted);
    expect(there).toBeInstanceOf(UpstreamError);
    expect({ ...Object(there) }).toEqual({ ...Object(here) });
    expect(String(there)).not.toContain(SECRET);
  });

  it.each([
    ['values', `{"choices":[${'{},'.repeat(1_000_000)}{}]}`],
    ['fields', `{${Array.from({ length: 10_001 }, (_, i) => `"field${i}":0`)}}`],
    ['levels', `{"a":${'['.repeat(50_000)}${']'.repeat(50_000)}}`],
  ])('is refused, and was produced, where it holds too many %s', async (_name, body) => {
    await expect(readThere('openai', CHAT, body)).rejects.toMatchObject({
      name: 'TransportError',
      kind: 'too_large',
      sent: true,
    });
  });

  it('that nobody has the time to read is a bad answer, and the next one is read', async () => {
    const hurried = createAnswers({ limitMs: 0 });
    onTestFinished(() => hurried.close());
    const body = JSON.stringify(OPENAI);

    const failure = readThere('openai', CHAT, body, hurried);

    await expect(failure).rejects.toMatchObject({ name: 'TransportError', kind: 'bad_response' });
    expect(await readThere('openai', CHAT, body)).toEqual(readHere('openai', CHAT, body));
  });

  it('is refused when there is no room for its result', async () => {
    const room = (): void => {
      throw overloaded();
    };

    const read = readThere('openai', CHAT, JSON.stringify(OPENAI), answers, { ...LIMITS, room });

    await expect(read).rejects.toMatchObject({ code: 'overloaded' });
  });

  it('is forgotten when its caller has left', async () => {
    const signal = AbortSignal.abort();

    const read = readThere('openai', CHAT, JSON.stringify(OPENAI), answers, { ...LIMITS, signal });

    await expect(read).rejects.toMatchObject({ kind: 'aborted', sent: true });
  });
});

describe('a whole answer of less than a megabyte', () => {
  const smaller = (more: object) =>
    JSON.stringify({ choices: [{ index: 0, message: { content: long(SAID, 300_000) } }], ...more });

  it('is read where it arrives', async () => {
    const { json } = await answers.read(targetOf('openai'), CHAT, response(smaller({})), LIMITS);

    expect(json.map((each) => typeof each)).toEqual(['string']);
  });

  it('is read elsewhere when it holds many values', async () => {
    const body = smaller({ list: Array.from({ length: 20_000 }, () => ({})) });

    expect(await readThere('openai', CHAT, body)).toEqual(readHere('openai', CHAT, body));
  });
});

describe('an event of more than 64 KiB', () => {
  const parse = (json: string) => answers.parse(Buffer.from(json), LIMITS);
  const picture = long('QUJD');
  const said = long(SAID);

  it('is parsed, its long opaque texts apart and all other texts in their places', async () => {
    const url = `data:image/png;base64,${picture}`;
    const event = {
      content: picture,
      text: said,
      images: [{ image_url: { url } }, { inlineData: { data: picture } }],
      audio: { data: picture },
      signature: 'short',
      n: [1, null],
    };

    const { json, longTexts } = await parse(JSON.stringify(event));

    const standIns = [...longTexts.keys()];
    expect(standIns.map((standIn) => standIn.length)).toEqual([1024, 1024]);
    expect([...longTexts.values()].map((bytes) => Buffer.from(bytes).toString())).toEqual([url, picture]);
    const images = [{ image_url: { url: standIns[0] } }, { inlineData: { data: standIns[1] } }];
    expect(json).toEqual({ ...event, images });
  });

  it('keeps a long text that JSON would escape', async () => {
    const event = { b64_json: long('a"b') };

    expect(await parse(JSON.stringify(event))).toEqual({ json: event, longTexts: new Map() });
  });

  it('is nothing when it is no JSON', async () => {
    expect((await parse(`{"a":"${picture}`)).json).toBeUndefined();
  });

  it.each([
    ['many values', `[${'0,'.repeat(40_000)}0]`],
    ['much text', JSON.stringify({ content: 'x'.repeat(1_100_000) })],
  ])('is refused for as %s as would keep the serving thread busy', async (_name, json) => {
    await expect(parse(json)).rejects.toMatchObject({ name: 'TransportError', kind: 'too_large' });
  });

  it('of a picture of ten megabytes is not refused', async () => {
    const { longTexts } = await parse(JSON.stringify({ b64_json: 'QUJD'.repeat(2_500_000) }));

    expect([...longTexts.values()].map(({ length }) => length)).toEqual([10_000_000]);
  });
});
