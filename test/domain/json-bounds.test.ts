import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { exceededBound, type JsonBounds } from '../../src/domain/json-bounds.ts';

const NONE: JsonBounds = { depth: 1000, values: 1_000_000, fields: 10_000 };

const exceeded = (json: string, bounds: Partial<JsonBounds>) =>
  exceededBound(Buffer.from(json), { ...NONE, ...bounds });

/** Depth, values, and the most fields of one object, counted on the parsed value. */
function measured(value: unknown): JsonBounds {
  if (typeof value !== 'object' || value === null) return { depth: 0, values: 1, fields: 0 };
  const parts = Object.values(value).map(measured);
  return {
    depth: 1 + Math.max(0, ...parts.map(({ depth }) => depth)),
    values: 1 + parts.reduce((sum, { values }) => sum + values, 0),
    fields: Math.max(Array.isArray(value) ? 0 : parts.length, ...parts.map(({ fields }) => fields)),
  };
}

describe('the bounds of JSON', () => {
  it('are told exactly, whatever stands in its texts and between its values', () => {
    const jsonText = fc.tuple(fc.jsonValue(), fc.constantFrom(undefined, 1, '\t'));
    fc.assert(
      fc.property(jsonText, ([value, indent]) => {
        const json = JSON.stringify(value, undefined, indent);
        const size = measured(JSON.parse(json));
        expect(exceeded(json, size)).toBeUndefined();
        for (const bound of ['depth', 'values', 'fields'] as const) {
          if (size[bound] > 0) expect(exceeded(json, { [bound]: size[bound] - 1 })).toBe(bound);
        }
      }),
    );
  });

  it.each([
    ['{"a":"\\\\\\"[[[["}', { depth: 1 }],
    ['["\\\\",[]]', { depth: 2, values: 3 }],
    ['[ ]', { depth: 1, values: 1 }],
    ['"', { values: 1 }],
    [']]]]', { depth: 1 }],
    ['', { values: 1 }],
  ])('are kept by %s', (json, bounds) => {
    expect(exceeded(json, bounds)).toBeUndefined();
  });

  it.each([
    ['values', `[${'{},'.repeat(5_000_000)}{}]`],
    ['depth', '['.repeat(10_000_000)],
    ['fields', `{${'"a":0,'.repeat(10_000)}"b":0}`],
  ])('are told to be exceeded before anything is parsed: %s', (bound, json) => {
    expect(exceeded(json, {})).toBe(bound);
  });
});
