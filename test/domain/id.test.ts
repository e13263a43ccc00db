import { describe, expect, it } from 'vitest';
import { idsFrom, newId } from '../../src/domain/id.ts';

describe('newId', () => {
  it('is the prefix and 32 hexadecimal digits', () => {
    expect(newId('call')).toMatch(/^call_[0-9a-f]{32}$/);
  });

  it('sorts in the order in which ids are made, within one millisecond too, whatever their prefixes', () => {
    const ids = Array.from({ length: 20_000 }, (_, index) => newId(index % 2 === 0 ? 'req' : 'key').slice(-32));
    expect(ids).toEqual([...new Set(ids)].sort());
  });
});

describe('idsFrom', () => {
  it('tells ids by the time at which they were made', () => {
    const before = Date.now();
    const id = newId('call');
    // Ids of one millisecond count on into the next one at most.
    const after = Date.now() + 1;
    expect(idsFrom('call', before - 1000) <= id && id < idsFrom('call', after + 1)).toBe(true);
    expect(idsFrom('call', Date.UTC(2026, 0, 1))).toBe(`call_019b76daa800${'0'.repeat(20)}`);
    expect(idsFrom('call', -1)).toBe(`call_${'0'.repeat(32)}`);
  });
});
