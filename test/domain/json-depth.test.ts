import { expect, it } from 'vitest';
import { depthExceeds } from '../../src/domain/json-depth.ts';

const deeperThan = (json: string, max: number): boolean => depthExceeds(Buffer.from(json), max);

it.each([
  ['1', 0],
  ['"[[{{"', 0],
  ['{}', 1],
  ['[[],[],{"a":1}]', 2],
  ['{"a":[{"b":[]}]}', 4],
  ['{"[[":"]]{{","\\"[":"\\\\"}', 1],
  ['["\\\\",["\\""]]', 2],
  ['[{"{\\"":[]}]', 3],
])('%s is nested %i levels deep', (json, levels) => {
  expect([deeperThan(json, levels), levels > 0 && deeperThan(json, levels - 1)]).toEqual([false, levels > 0]);
});

it.each(['"', '"\\', '["[', ']]]]', ''])('ends on bytes that are no JSON: %j', (json) => {
  expect(deeperThan(json, 64)).toBe(false);
});
