import { describe, expect, test } from 'vitest';
import type { Mapping } from '../../src/domain/model.ts';
import { inputDocument, inputText, policyCandidate, repeatedInput } from '../../src/policy/input-document.ts';

const mapping: Mapping = {
  id: 'acme/swift-1',
  providerId: 'acme',
  modelId: 'swift-1',
  externalId: 'swift-1-2026',
  custom: false,
  names: ['swift-1', 'swift', 'acme/swift-1', 'acme/swift'],
  providerNames: ['acme'],
  prices: { prompt: 2_000_000n, completion: 4_000_000n, image: 5n },
  freeFlag: false,
  inputModalities: ['text'],
  outputModalities: ['text'],
  streaming: true,
  vision: false,
  tools: false,
  parallelToolCalls: false,
  reasoning: false,
  jsonOutput: false,
  structuredOutputs: false,
  stability: 'stable',
  tags: ['region:eu', 'stability:stable'],
};

describe('a candidate', () => {
  test('shows the policy its names, its pricing type, its token prices and its tags, and nothing else', () => {
    expect(policyCandidate(mapping)).toEqual({
      id: 'acme/swift-1',
      names: ['swift-1', 'swift', 'acme/swift-1', 'acme/swift'],
      provider_names: ['acme'],
      free: false,
      input_price: 2_000_000,
      output_price: 4_000_000,
      tags: ['region:eu', 'stability:stable'],
    });
  });

  test('of which nothing is known has no tags', () => {
    expect(policyCandidate({ ...mapping, tags: [] })).not.toHaveProperty('tags');
  });

  test('lacks a price that is unknown', () => {
    const { input_price, output_price, free } = policyCandidate({ ...mapping, prices: { prompt: 0n } });
    expect({ input_price, output_price, free }).toEqual({ input_price: 0, output_price: undefined, free: false });
  });

  test('with a price beyond exact numbers stays above every cap', () => {
    const { input_price } = policyCandidate({ ...mapping, prices: { prompt: 9_000_000_000_000_000_001n } });
    expect(input_price).toBe(Number.MAX_SAFE_INTEGER);
    expect(Number.MAX_SAFE_INTEGER).toBeGreaterThan(9_000_000_000_000);
  });

  test('is made once for each mapping', () => {
    expect(policyCandidate(mapping)).toBe(policyCandidate(mapping));
  });
});

test('an input document holds the facts of one call', () => {
  const subjects = [{ scope: 'member', id: 'mem_1' } as const, { scope: 'key', id: 'key_1' } as const];
  expect(inputDocument('image', null, subjects, [mapping])).toEqual({
    action: 'image',
    client_ip: null,
    subjects,
    candidates: [policyCandidate(mapping)],
  });
});

describe('a repeated question', () => {
  const subjects = [{ scope: 'key', id: 'key_1' } as const];
  const data = { text: '{}', digest: 'of the text' };
  const ask = () => repeatedInput(data, 'chat', '192.0.2.1', structuredClone(subjects), [mapping]);

  test('is the same input, frozen, with its text', () => {
    const input = ask();
    expect(ask()).toBe(input);
    expect(inputText(input)).toBe(JSON.stringify(inputDocument('chat', '192.0.2.1', subjects, [mapping])));
    for (const part of [input, input.subjects, input.subjects[0], input.candidates, input.candidates[0]?.names]) {
      expect(Object.isFrozen(part)).toBe(true);
    }
  });

  test.each<[string, Parameters<typeof inputDocument>]>([
    ['action', ['image', '192.0.2.1', subjects, [mapping]]],
    ['address', ['chat', null, subjects, [mapping]]],
    ['subject', ['chat', '192.0.2.1', [{ scope: 'key', id: 'key_2' }], [mapping]]],
    ['scope', ['chat', '192.0.2.1', [{ scope: 'member', id: 'key_1' }], [mapping]]],
    ['number of subjects', ['chat', '192.0.2.1', [...subjects, { scope: 'member', id: 'mem_1' }], [mapping]]],
    ['price', ['chat', '192.0.2.1', subjects, [{ ...mapping, prices: { prompt: 1n } }]]],
    ['number of candidates', ['chat', '192.0.2.1', subjects, [mapping, { ...mapping, id: 'acme/swift-2' }]]],
    ['tool', ['chat', '192.0.2.1', subjects, [mapping], 'chat']],
  ])('is another one with another %s', (_, question) => {
    const before = ask();
    const input = repeatedInput(data, ...question);
    expect(input).toEqual(inputDocument(...question));
    expect(inputText(input)).toBe(JSON.stringify(input));
    expect(input).not.toEqual(before);
    expect(ask()).toEqual(before);
  });

  test('is another object for other data', () => {
    expect(repeatedInput({ ...data }, 'chat', '192.0.2.1', subjects, [mapping])).not.toBe(ask());
  });
});
