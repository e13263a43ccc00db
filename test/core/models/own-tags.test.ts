import { describe, expect, it } from 'vitest';
import { seenBy, statesFact } from '../../../src/core/reach.ts';
import { type Mapping, TEXT_ONLY } from '../../../src/domain/model.ts';

const mapping = (providerId: string, tags: readonly string[]): Mapping => ({
  ...TEXT_ONLY,
  id: `${providerId}/m`,
  providerId,
  modelId: 'm',
  externalId: 'm',
  custom: false,
  names: ['m', 'm-latest', `${providerId}/m`],
  providerNames: [providerId],
  prices: {},
  freeFlag: false,
  tags,
});

const known = mapping('openai', ['region:us', 'stability:stable']);
const unknown = mapping('vllm', []);

const seen = (each: Mapping, ...tagSets: { target: string; tags: string[] }[]) =>
  seenBy({ tagSets, keys: [] })(each).tags;

describe('tags of an organization', () => {
  it.each(['m', 'm-latest', 'openai/m', 'openai/*'])('stand on a mapping by %s', (target) => {
    expect(seen(known, { target, tags: ['team:x'] })).toEqual(['region:us', 'stability:stable', 'team:x']);
  });

  it.each(['openai', 'openai/', 'open/*', 'M', 'vllm/m', '*'])('do not by %s', (target) => {
    const see = seenBy({ tagSets: [{ target, tags: ['team:x'] }], keys: [] });
    expect(see(known)).toBe(known);
  });

  it('come together from several targets, once each and sorted', () => {
    const sets = [
      { target: 'openai/*', tags: ['z', 'a'] },
      { target: 'm', tags: ['z', 'm:1'] },
    ];
    expect(seen(known, ...sets)).toEqual(['a', 'm:1', 'region:us', 'stability:stable', 'z']);
  });

  it('state no fact of what the catalogue knows, whatever was stored, and state them of what it does not know', () => {
    const set = { target: 'm', tags: ['region:eu', 'no_training', 'retention:none', 'stability:best', 'regional'] };
    expect(seen(known, set)).toEqual(['region:us', 'regional', 'stability:stable']);
    expect(seen(unknown, set)).toEqual(['no_training', 'region:eu', 'regional', 'retention:none', 'stability:best']);
  });

  it('give the same object each time, and by other tags what the mapping itself would give', () => {
    const first = seenBy({ tagSets: [{ target: 'm', tags: ['one'] }], keys: [] });
    const second = seenBy({ tagSets: [{ target: 'm', tags: ['two'] }], keys: [] });
    expect(first(known)).toBe(first(known));
    expect(first(first(known))).toBe(first(known));
    expect(second(first(known)).tags).toEqual(['region:us', 'stability:stable', 'two']);
    expect(seenBy({ tagSets: [], keys: [] })(first(known))).toBe(known);
  });

  it('hide what is known of a provider that is called at another address, but not what is known of the model', () => {
    const key = { id: 'pkey_1', label: '', projectId: null, secret: { keyId: '', ciphertext: '' } };
    const keys = [
      { ...key, provider: 'openai', baseUrl: 'https://eu.openai.example/v1' },
      { ...key, provider: 'vllm', baseUrl: null },
    ];
    const see = seenBy({ tagSets: [{ target: 'm', tags: ['region:eu', 'team:x'] }], keys });
    const moved = see({ ...known, region: 'us' });
    expect(moved).toMatchObject({ id: 'openai/m', tags: ['stability:stable', 'team:x'] });
    expect(moved).not.toHaveProperty('region');
    expect(see(unknown).tags).toEqual(['region:eu', 'team:x']);
  });
});

it.each([
  ['region', true],
  ['region:eu', true],
  ['no_training', true],
  ['retention:30d', true],
  ['stability:x', true],
  ['regions:eu', false],
  ['eu:region', false],
  ['training', false],
])('%s states a fact of the catalogue: %s', (tag, expected) => {
  expect(statesFact(tag)).toBe(expected);
});
