import { describe, expect, it } from 'vitest';
import { createCatalog } from '../../../src/catalog/catalog.ts';
import { unnamedModels } from '../../../src/core/auto.ts';
import { ManualClock } from '../../../src/domain/time.ts';

const clock = new ManualClock('2026-11-25T12:00:00Z');
const catalog = createCatalog({ sandbox: true, upstreams: [], clock });

const chosen = (served: readonly string[], image?: string, moderation?: string) => {
  const models = unnamedModels({ image, moderation }, { catalog, servedProviders: new Set(served) }, clock.now());
  return [models.image, models.moderation];
};

describe('the models of requests that name none', () => {
  it.each([
    ['nothing but the sandbox', ['sandbox'], ['sandbox-image-plus', 'sandbox-moderation']],
    [
      'a provider that neither draws nor moderates',
      ['sandbox', 'anthropic'],
      ['sandbox-image-plus', 'sandbox-moderation'],
    ],
    ['OpenAI, without what is announced to end', ['sandbox', 'openai'], ['gpt-image-2', 'omni-moderation-latest']],
    ['Google', ['google', 'sandbox'], ['gemini-2.5-flash-image', 'sandbox-moderation']],
    ['both', ['google', 'openai'], ['gemini-2.5-flash-image', 'omni-moderation-latest']],
    ['no provider at all', [], ['sandbox-image-plus', 'sandbox-moderation']],
  ])('are, with %s: %j', (_, served, models) => {
    expect(chosen(served)).toEqual(models);
  });

  it('are those that the operator names', () => {
    expect(chosen(['openai'], 'sandbox-image-max', 'sandbox-moderation')).toEqual([
      'sandbox-image-max',
      'sandbox-moderation',
    ]);
  });
});
