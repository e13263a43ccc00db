import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type ListRun, listChange } from '../../src/lib/collections.ts';

const placesOf = (runs: readonly ListRun[]): number[] =>
  runs.flatMap(({ at, entries }) => entries.map((_, index) => at + index));

/** The list without these runs. */
const without = (list: readonly string[], runs: readonly ListRun[]): string[] => {
  const places = new Set(placesOf(runs));
  return list.filter((_, place) => !places.has(place));
};

/** The list with these runs put in at their places. */
const withRuns = (list: readonly string[], runs: readonly ListRun[]): string[] =>
  runs.reduce((grown, { at, entries }) => grown.toSpliced(at, 0, ...entries), [...list]);

const entries = fc.array(fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g'), { maxLength: 12 });

describe('a change of a list', () => {
  it.each([
    [['a', 'b'], ['a', 'b'], [], []],
    [['a', 'b'], ['a', 'x', 'b'], [], [{ at: 1, entries: ['x'] }]],
    [['a', 'b', 'c', 'd'], ['a', 'd', 'e', 'f'], [{ at: 1, entries: ['b', 'c'] }], [{ at: 2, entries: ['e', 'f'] }]],
    [[], ['a'], [], [{ at: 0, entries: ['a'] }]],
    [['a'], [], [{ at: 0, entries: ['a'] }], []],
    [['a', 'a'], ['a'], [{ at: 1, entries: ['a'] }], []],
  ])('from %j to %j', (before, after, removed, added) => {
    expect(listChange(before, after)).toEqual({ removed, added });
  });

  it('of one entry that moves is that entry, wherever it goes', () => {
    const list = Array.from({ length: 1000 }, (_, index) => `entry ${index}`);
    for (const [from, to] of [
      [999, 0],
      [0, 999],
      [500, 20],
    ] as const) {
      const [entry = ''] = list.slice(from);
      expect(listChange(list, list.toSpliced(from, 1).toSpliced(to, 0, entry))).toEqual({
        removed: [{ at: from, entries: [entry] }],
        added: [{ at: to, entries: [entry] }],
      });
    }
  });

  it('tells each list by the other', () => {
    fc.assert(
      fc.property(entries, entries, (before, after) => {
        const { removed, added } = listChange(before, after);
        expect(withRuns(without(before, removed), added)).toEqual(after);
        expect(withRuns(without(after, added), removed)).toEqual(before);
      }),
    );
  });

  it('is the smallest where no entry repeats', () => {
    const shuffled = fc.shuffledSubarray(['a', 'b', 'c', 'd', 'e', 'f']);
    fc.assert(
      fc.property(shuffled, shuffled, (before, after) => {
        expect(placesOf(listChange(before, after).removed)).toHaveLength(before.length - longestCommon(before, after));
      }),
    );
  });
});

/** Length of the longest common subsequence, by trying every subsequence. */
function longestCommon(before: readonly string[], after: readonly string[]): number {
  const [first, ...rest] = before;
  if (first === undefined) return 0;
  const at = after.indexOf(first);
  const skipped = longestCommon(rest, after);
  return at === -1 ? skipped : Math.max(skipped, 1 + longestCommon(rest, after.slice(at + 1)));
}
