import { describe, expect, it } from 'vitest';
import { newId } from '../../src/domain/id.ts';

describe('newId', () => {
  it('is the prefix and 32 hexadecimal digits', () => {
    expect(newId('call')).toMatch(/^call_[0-9a-f]{32}$/);
  });

  it('sorts in the order in which ids are made, within one millisecond too, whatever their prefixes', () => {
    const ids = Array.from({ length: 20_000 }, (_, index) => newId(index % 2 === 0 ? 'req' : 'key').slice(-32));
    expect(ids).toEqual([...new Set(ids)].sort());
  });
});
