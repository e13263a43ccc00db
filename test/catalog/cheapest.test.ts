import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createCatalog } from '../../src/catalog/catalog.ts';
import { comparePrice, type Mapping, type Prices } from '../../src/domain/model.ts';
import { systemClock } from '../../src/domain/time.ts';

const [any] = createCatalog({ sandbox: true, upstreams: [], clock: systemClock }).mappings();

function priced(id: string, prices: Prices): Mapping {
  if (any === undefined) throw new Error('the catalogue is empty');
  return { ...any, id, prices };
}

const IN_ORDER: Mapping[] = [
  priced('free', { prompt: 0n, completion: 0n }),
  priced('b', { prompt: 1n, completion: 2n }),
  priced('c', { prompt: 2n, completion: 1n, request: 0n }),
  priced('a', { prompt: 2n, completion: 1n, request: 5n }),
  priced('d', { prompt: 9n, completion: 9n }),
  priced('image', { per_image: 1n, request: 1n }),
  priced('dear-image', { per_image: 3n }),
  priced('half', { prompt: 0n }),
  priced('unknown', {}),
];

describe('comparePrice', () => {
  it('sorts by tokens, then fees, then id, with what is not known last', () => {
    fc.assert(
      fc.property(fc.shuffledSubarray(IN_ORDER, { minLength: IN_ORDER.length }), (mappings) => {
        expect(mappings.toSorted(comparePrice)).toEqual(IN_ORDER);
      }),
    );
  });
});
