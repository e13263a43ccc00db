import { describe, expect, test } from 'vitest';
import type { Mapping } from '../../src/domain/model.ts';
import { inputDocument, policyCandidate } from '../../src/policy/input-document.ts';

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
};

describe('a candidate', () => {
  test('shows the policy its names, its pricing type and its token prices, and nothing else', () => {
    expect(policyCandidate(mapping)).toEqual({
      id: 'acme/swift-1',
      names: ['swift-1', 'swift', 'acme/swift-1', 'acme/swift'],
      provider_names: ['acme'],
      free: false,
      input_price: 2_000_000,
      output_price: 4_000_000,
    });
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
