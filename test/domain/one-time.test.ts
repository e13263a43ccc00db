import { expect, it } from 'vitest';
import { OneTime } from '../../src/domain/identity.ts';
import { ManualClock } from '../../src/domain/time.ts';

it('is taken once, by its owner, within its time', () => {
  const clock = new ManualClock(0);
  const values = new OneTime<string>(clock, { lifeMs: 1000 });
  values.put('ada', 'first');
  values.put('ada', 'second');
  values.put('bob', 'late');
  expect([values.take('carl'), values.take('ada'), values.take('ada')]).toEqual([undefined, 'second', undefined]);
  clock.advance(1000);
  expect(values.take('bob')).toBe(undefined);
});

it('is forgotten for the sake of newer ones', () => {
  const values = new OneTime<string>(new ManualClock(0), { most: 2 });
  for (const owner of ['ada', 'bob', 'carl']) values.put(owner, owner);
  expect(['ada', 'bob', 'carl'].map((owner) => values.take(owner))).toEqual([undefined, 'bob', 'carl']);
});
