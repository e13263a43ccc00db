import { describe, expect, it } from 'vitest';
import { anthropicAdapter } from '../../../src/providers/anthropic/anthropic.ts';
import { googleAdapter } from '../../../src/providers/google/google.ts';
import { openAiAdapter } from '../../../src/providers/openai/openai.ts';
import { parseJson } from '../../../src/providers/wire/fields.ts';
import { gathered } from '../answers.ts';

const said = (model: string) => ({
  openai: { model, choices: [{ message: { content: 'a' } }] },
  anthropic: { model, content: [{ type: 'text', text: 'a' }] },
  google: { modelVersion: model, candidates: [{ content: { parts: [{ text: 'a' }] } }] },
});

const adapters = { openai: openAiAdapter, anthropic: anthropicAdapter, google: googleAdapter };

describe("a model's own name", () => {
  it.each(['openai', 'anthropic', 'google'] as const)('is taken up to 512 characters from %s', (wire) => {
    const named = (model: string) =>
      adapters[wire].parseResponse(gathered(JSON.stringify(said(model)[wire]))).model?.length;

    expect([named('m'.repeat(512)), named('m'.repeat(513))]).toEqual([512, undefined]);
  });
});

describe("an upstream's JSON", () => {
  it.each([
    ['a million values', `[${'0,'.repeat(999_998)}0]`],
    ['ten thousand fields', `{${Array.from({ length: 10_000 }, (_, n) => `"k${n}":0`)}}`],
    ['a thousand levels', `${'['.repeat(1000)}${']'.repeat(1000)}`],
  ])('may hold %s', (_name, json) => {
    expect(parseJson(json)).toBeDefined();
  });

  it.each([
    ['values', `[${'0,'.repeat(999_999)}0]`],
    ['fields', `{${Array.from({ length: 10_001 }, (_, n) => `"k${n}":0`)}}`],
    ['levels', `${'['.repeat(1001)}${']'.repeat(1001)}`],
  ])('is not parsed with more %s', (_name, json) => {
    expect(parseJson(json)).toBeUndefined();
  });
});
