import { describe, expect, it } from 'vitest';
import { type Mapping, TEXT_ONLY } from '../../../src/domain/model.ts';
import type { ModerationRequest } from '../../../src/generated/types.ts';
import { openAiModerations } from '../../../src/providers/openai/moderations.ts';
import type { Endpoint } from '../../../src/providers/wire/adapter.ts';
import { gathered } from '../answers.ts';

const ENDPOINT: Endpoint = { base: { origin: 'https://up.example', path: '/v1' }, addresses: 'trusted' };

const MAPPING: Mapping = {
  ...TEXT_ONLY,
  id: 'openai/omni-moderation-latest',
  providerId: 'openai',
  modelId: 'omni-moderation-latest',
  externalId: 'omni-moderation-2024-09-26',
  custom: false,
  names: ['omni-moderation-latest'],
  providerNames: ['openai'],
  prices: {},
  freeFlag: true,
  outputModalities: ['moderation'],
};

const PARTS: ModerationRequest['input'] = [
  { type: 'text', text: 'x' },
  { type: 'image_url', image_url: { url: 'https://images.example/1.png' } },
];

const CLEAN = { flagged: false, categories: { violence: false }, category_scores: { violence: 0.1 } };

const parse = (answer: unknown, input: ModerationRequest['input'] = 'x') =>
  openAiModerations.parseResponse(gathered(typeof answer === 'string' ? answer : JSON.stringify(answer)), {
    request: { input },
    mapping: MAPPING,
  });

describe('the request', () => {
  it('is the caller’s under the upstream’s model, unknown fields with it', () => {
    const request = { input: PARTS, model: 'anything', x_new: 1 };

    expect(openAiModerations.buildRequest({ request, mapping: MAPPING }, ENDPOINT)).toEqual({
      origin: 'https://up.example',
      path: '/v1/moderations',
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json' },
      body: JSON.stringify({ input: PARTS, model: 'omni-moderation-2024-09-26', x_new: 1 }),
      stream: false,
      addresses: 'trusted',
    });
  });
});

describe('the answer', () => {
  it('has one verdict for each input, other fields kept', () => {
    const flagged = { ...CLEAN, flagged: true, category_applied_input_types: { violence: ['text'] }, x_new: 1 };

    expect(parse({ id: 'modr-1', model: 'omni-2024', results: [CLEAN, flagged] }, ['a', 'b'])).toEqual({
      model: 'omni-2024',
      results: [CLEAN, flagged],
    });
    expect(parse({ results: [CLEAN] }, PARTS)).toEqual({ model: undefined, results: [CLEAN] });
  });

  it('is flagged by its categories where the server leaves that out', () => {
    const categories = { hate: false, violence: true };
    const category_scores = { hate: 0, violence: 1 };

    expect(parse({ results: [{ categories, category_scores }] }).results).toEqual([
      { flagged: true, categories, category_scores },
    ]);
  });

  const MALFORMED = 'The provider sent a malformed answer.';
  const NO_VERDICT = 'The provider sent a malformed verdict.';
  const MISCOUNTED = 'The provider did not judge every input once.';

  it.each<[string, unknown, ModerationRequest['input'], string]>([
    ['no JSON', '{', 'x', MALFORMED],
    ['no results', { id: 'modr-1' }, 'x', MALFORMED],
    ['too few verdicts', { results: [CLEAN] }, ['a', 'b'], MISCOUNTED],
    ['too many verdicts', { results: [CLEAN, CLEAN] }, PARTS, MISCOUNTED],
    ['a verdict that is none', { results: [null] }, 'x', NO_VERDICT],
    ['a verdict of another type', { results: [{ ...CLEAN, flagged: 'no' }] }, 'x', NO_VERDICT],
    ['a verdict without scores', { results: [{ flagged: false, categories: {} }] }, 'x', NO_VERDICT],
    ['an error in disguise', { error: 'sk-x' }, 'x', 'The provider reported an error inside a successful answer.'],
  ])('is refused for %s', (_name, answer, input, message) => {
    expect(() => parse(answer, input)).toThrow(expect.objectContaining({ errorType: 'bad_response', message }));
  });
});
