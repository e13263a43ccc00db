import { beforeEach, describe, expect, it } from 'vitest';
import { type CachedAnswer, ResponseCache } from '../../../src/core/chat-answer.ts';
import { ManualClock } from '../../../src/domain/time.ts';
import { NO_USAGE } from '../../../src/domain/usage.ts';
import { mappingOf } from '../../providers/answers.ts';

const KB = 1024;
const MAX_BYTES = 64 * KB;

const answer = (characters: number): CachedAnswer => ({
  mapping: mappingOf('acme'),
  upstreamModel: undefined,
  dropped: [],
  usage: NO_USAGE,
  kept: { kind: 'stream', characters, chunks: () => [] },
});

let cache: ResponseCache;

beforeEach(() => {
  cache = new ResponseCache(new ManualClock(0), MAX_BYTES);
});

const kept = (count: number): number[] =>
  Array.from({ length: count }, (_, number) => number).filter((number) => cache.get(`key ${number}`) !== undefined);

describe('a cache that is full', () => {
  it('gives up the answers that were not asked for longest, and no more of them than a 64th part beyond the need', () => {
    for (let number = 0; number < 20; number += 1) cache.set(`key ${number}`, answer(KB), 60);
    expect(kept(20)).toHaveLength(20);
    cache.get('key 0');

    // Each takes 3 KB and some bytes: of 64 KB, 21 fit.
    cache.set('key 20', answer(KB), 60);
    cache.set('key 21', answer(KB), 60);

    expect(kept(22)).toEqual([0, ...Array.from({ length: 20 }, (_, number) => number + 2)]);
  });

  it('never holds more than its bytes', () => {
    for (let number = 0; number < 1000; number += 1) cache.set(`key ${number}`, answer(number % 100), 60);
    const bytes = kept(1000).map((number) => 2 * (number % 100) + KB);

    expect(bytes.reduce((sum, each) => sum + each, 0)).toBeLessThanOrEqual(MAX_BYTES);
    expect(kept(1000).at(-1)).toBe(999);
    expect(kept(1000).length).toBeGreaterThan(50);
  });

  it('does not take an answer of more than an eighth of it', () => {
    cache.set('key 0', answer(KB), 60);
    cache.set('key 1', answer(4 * KB), 60);

    expect(kept(2)).toEqual([0]);
  });
});
