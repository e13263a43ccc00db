import { describe, expect, it } from 'vitest';
import { RecentMap } from '../../src/lib/recent-map.ts';

describe('RecentMap', () => {
  it('remembers up to its capacity and then forgets what was not asked for longest', () => {
    const map = new RecentMap<string, number>(2);
    map.set('a', 1);
    map.set('b', 2);
    map.get('a');
    map.set('c', 3);
    expect([map.get('a'), map.get('b'), map.get('c')]).toEqual([1, undefined, 3]);
  });

  it('replaces a value without forgetting another', () => {
    const map = new RecentMap<string, number>(2);
    map.set('a', 1);
    map.set('b', 2);
    map.set('b', 3);
    expect([map.get('a'), map.get('b')]).toEqual([1, 3]);
  });
});
