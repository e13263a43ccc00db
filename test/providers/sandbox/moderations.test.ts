import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Sandbox, startSandbox } from '../../../src/providers/sandbox/sandbox.ts';

let sandbox: Sandbox;
let client: OpenAI;

beforeAll(async () => {
  sandbox = await startSandbox();
  client = new OpenAI({ apiKey: sandbox.key, baseURL: `${sandbox.origin}/v1`, maxRetries: 0 });
});

afterAll(() => sandbox.close());

const moderate = (input: OpenAI.ModerationCreateParams['input']) =>
  client.moderations.create({ model: 'sandbox-moderation', input });

/** The flagged categories of each result. */
async function flagged(input: OpenAI.ModerationCreateParams['input']): Promise<string[][]> {
  const { results } = await moderate(input);
  return results.map((result) => {
    const names = Object.entries(result.categories).flatMap(([name, value]) => (value ? [name] : []));
    const scored = Object.entries(result.category_scores).flatMap(([name, score]) => (score > 0.5 ? [name] : []));
    expect([scored, result.flagged]).toEqual([names, names.length > 0]);
    return names;
  });
}

const CATEGORIES = [
  'harassment',
  'harassment/threatening',
  'hate',
  'hate/threatening',
  'illicit',
  'illicit/violent',
  'self-harm',
  'self-harm/instructions',
  'self-harm/intent',
  'sexual',
  'sexual/minors',
  'violence',
  'violence/graphic',
];

const each = <T>(value: T) => Object.fromEntries(CATEGORIES.map((category) => [category, value]));

describe('the moderation of the sandbox', () => {
  it('judges every category of OpenAI', async () => {
    expect(await moderate('a red fox')).toEqual({
      id: expect.stringMatching(/^modr-[0-9a-f]{24}$/),
      model: 'sandbox-moderation',
      results: [
        {
          flagged: false,
          categories: each(false),
          category_scores: each(0.01),
          category_applied_input_types: each(['text']),
        },
      ],
    });
  });

  it.each<[string, string[]]>([
    ['flag:violence', ['violence']],
    ['x flag:violence/graphic y', ['violence', 'violence/graphic']],
    ['flag:self-harm/intent and flag:hate', ['hate', 'self-harm', 'self-harm/intent']],
    ['flag:weather', []],
    ['I will KILL it.', ['violence']],
    ['skilled', []],
    ['a bomb', ['illicit', 'illicit/violent']],
  ])('flags by what %j says', async (text, categories) => {
    expect(await flagged(text)).toEqual([categories]);
  });

  it('gives one result for each text of a list, and one for a list of parts', async () => {
    const image = { type: 'image_url' as const, image_url: { url: 'data:,' } };

    expect(await flagged(['a fox', 'murder', 'flag:sexual'])).toEqual([[], ['violence'], ['sexual']]);
    expect(await flagged([{ type: 'text', text: 'murder' }, image, { type: 'text', text: 'idiot' }])).toEqual([
      ['harassment', 'violence'],
    ]);
    const { results } = await moderate([{ type: 'text', text: 'a fox' }, image]);
    expect(results[0]?.category_applied_input_types).toMatchObject({ violence: ['text', 'image'], hate: ['text'] });
  });

  it('reads the first 100,000 characters of a request', async () => {
    const words = 'x '.repeat(49_997);

    expect(await flagged([`${words}murder`, 'murder'])).toEqual([['violence'], []]);
    expect(await flagged([`${words}x murder`])).toEqual([[]]);
  });

  it.each<[string, object, number]>([
    ['another model', { model: 'sandbox-paid', input: 'x' }, 404],
    ['no model', { input: 'x' }, 404],
    ['no input', { model: 'sandbox-moderation' }, 400],
    ['an empty list', { model: 'sandbox-moderation', input: [] }, 400],
    ['the directive to fail', { model: 'sandbox-moderation', input: ['x', 'fail:503'] }, 503],
  ])('is refused for %s', async (_name, body, status) => {
    const response = await fetch(`${sandbox.origin}/v1/moderations`, {
      method: 'POST',
      headers: { authorization: `Bearer ${sandbox.key}` },
      body: JSON.stringify(body),
    });

    expect(response.status).toBe(status);
    expect(await response.json()).toHaveProperty('error.message');
  });
});
