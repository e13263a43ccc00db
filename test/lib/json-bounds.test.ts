import { describe, expect, it } from 'vitest';
import { exceededBound, type JsonBounds, measureJson } from '../../src/lib/json.ts';

const FAR: JsonBounds = { depth: 1000, values: 1e9, fields: 1e9 };

const exceeded = (json: string, bounds: Partial<JsonBounds>) => exceededBound(Buffer.from(json), { ...FAR, ...bounds });

/** How many values and fields, by the parser. */
function counted(value: unknown): { values: number; fields: number } {
  const inside = typeof value === 'object' && value !== null ? Object.values(value) : [];
  const own = { values: 1, fields: Array.isArray(value) ? 0 : inside.length };
  return inside
    .map(counted)
    .reduce((sum, each) => ({ values: sum.values + each.values, fields: sum.fields + each.fields }), own);
}

const LONG = 'x'.repeat(1000);

const SAMPLES = [
  '1',
  ' "" ',
  'null',
  '{}',
  '[]',
  '[ \n\t\r ]',
  '{ }',
  '[1,2,3]',
  '[[],[],{"a":1}]',
  '{"a":[{"b":[]}]}',
  '{"[[":"]]{{,,::","\\"[":"\\\\"}',
  '["\\\\",["\\""]]',
  '[{"{\\"":[]}]',
  `["${LONG}","${LONG}\\"${LONG}","${LONG}\\\\",0]`,
  `{"${LONG}\\\\\\"":["${'\\\\'.repeat(100)}",["${'\\"'.repeat(100)}"]],"${LONG}":true}`,
  `["${'é'.repeat(60)}","${'x'.repeat(47)}\\"","${'x'.repeat(48)}\\"",[]]`,
];

describe('what JSON holds', () => {
  it.each(SAMPLES)('is counted as the parser finds it: %.40s', (json) => {
    expect(measureJson(Buffer.from(json), FAR)).toEqual({ ...counted(JSON.parse(json)), exceeded: undefined });
  });

  it.each(['"', '"\\', '["[', ']]]]', '', `"${LONG}`, `"${LONG}\\`])(
    'is harmless to ask of bytes that are no JSON: %.20s',
    (json) => {
      expect(exceeded(json, {})).toBeUndefined();
    },
  );

  it('is read from a part of a larger buffer', () => {
    const bytes = Buffer.from('[[[["a","b"]]]]');

    expect(measureJson(bytes.subarray(3, 12), FAR).values).toBe(3);
  });
});

describe('a bound', () => {
  it.each([
    ['1', 0],
    ['"[[{{"', 0],
    ['{}', 1],
    ['[[],[],{"a":1}]', 2],
    ['{"a":[{"b":[]}]}', 4],
    ['{"[[":"]]{{","\\"[":"\\\\"}', 1],
  ])('of depth holds %s to %i levels', (json, depth) => {
    expect([exceeded(json, { depth }), exceeded(json, { depth: depth - 1 })]).toEqual([
      undefined,
      depth === 0 ? undefined : 'depth',
    ]);
  });

  it.each([
    ['[1,2,3]', 4],
    ['{"a":[{},[],"",null]}', 6],
    ['[[[[]]]]', 4],
  ])('of values holds %s to %i of them', (json, values) => {
    expect([exceeded(json, { values }), exceeded(json, { values: values - 1 })]).toEqual([undefined, 'values']);
  });

  it.each([
    ['{"a":1,"b":2,"c":{"d":4}}', 3],
    ['{"c":{"d":4,"e":5},"a":1}', 2],
    ['[{"a":1},{"b":1},{"c":1}]', 1],
  ])('of fields holds each object of %s to %i of them', (json, fields) => {
    expect([exceeded(json, { fields }), exceeded(json, { fields: fields - 1 })]).toEqual([undefined, 'fields']);
  });

  it('that is exceeded first is the one that is named', () => {
    const bounds = { depth: 2, values: 3, fields: 1 };

    expect(['[[[', '[0,0,0,0,[[[', '{"a":0,"b":0,'].map((json) => exceeded(json, bounds))).toEqual([
      'depth',
      'values',
      'fields',
    ]);
  });
});
