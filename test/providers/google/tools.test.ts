import { describe, expect, it } from 'vitest';
import { sentBody, USER_TURN } from '../google-samples.ts';

const WEATHER = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
};
const TOOLS = [
  { type: 'function', function: { name: 'get_weather', description: 'Tells it.', parameters: WEATHER, strict: true } },
  { type: 'function', function: { name: 'get_time', parameters: {} } },
];
const DECLARED = [
  {
    functionDeclarations: [
      { name: 'get_weather', description: 'Tells it.', parametersJsonSchema: WEATHER },
      { name: 'get_time' },
    ],
  },
];

/** What a schema of parameters is sent as. */
const sentWith = (parameters: object): unknown =>
  sentBody({ tools: [{ type: 'function', function: { name: 'f', parameters } }] });

const declaredWith = (parametersJsonSchema: object) => ({
  contents: [USER_TURN],
  tools: [{ functionDeclarations: [{ name: 'f', parametersJsonSchema }] }],
});

describe('tools', () => {
  it('become function declarations with their JSON Schema', () => {
    expect(sentBody({ tools: TOOLS })).toEqual({ contents: [USER_TURN], tools: DECLARED });
  });

  it.each([
    ['auto', { mode: 'AUTO' }],
    ['none', { mode: 'NONE' }],
    ['required', { mode: 'ANY' }],
    [
      { type: 'function', function: { name: 'get_time' } },
      { mode: 'ANY', allowedFunctionNames: ['get_time'] },
    ],
    [
      {
        type: 'allowed_tools',
        allowed_tools: { mode: 'auto', tools: [{ type: 'function', function: { name: 'get_time' } }] },
      },
      { mode: 'VALIDATED', allowedFunctionNames: ['get_time'] },
    ],
    [
      {
        type: 'allowed_tools',
        allowed_tools: { mode: 'required', tools: [{ type: 'function', function: { name: 'get_time' } }] },
      },
      { mode: 'ANY', allowedFunctionNames: ['get_time'] },
    ],
  ])('are called as the choice %j says', (choice, functionCallingConfig) => {
    expect(sentBody({ tools: TOOLS, tool_choice: choice })).toEqual({
      contents: [USER_TURN],
      tools: DECLARED,
      toolConfig: { functionCallingConfig },
    });
  });

  it('have no configuration without a function', () => {
    expect(sentBody({ tool_choice: 'none' })).toEqual({ contents: [USER_TURN] });
  });

  it('hold the search of Google where web search is asked for', () => {
    expect(sentBody({ web_search_options: {} })).toEqual({ contents: [USER_TURN], tools: [{ googleSearch: {} }] });
  });
});

describe('schemas', () => {
  it('keep references, unions and additional properties, and say the rest in words that Google documents', () => {
    expect(
      sentWith({
        $schema: 'https://json-schema.org/draft/2020-12/schema',
        type: 'object',
        properties: {
          kind: { const: 'a' },
          on: { const: true },
          maybe: { type: ['string', 'null'], default: null },
          either: { anyOf: [{ type: 'string' }, { $ref: '#/definitions/node', description: 'One.' }] },
          base: { allOf: [{ $ref: '#/definitions/node' }], title: 'Base' },
          list: { type: 'array', items: { $ref: '#/definitions/node' }, uniqueItems: true },
          open: { type: 'object', additionalProperties: { const: 3 } },
        },
        definitions: { node: { type: 'object', properties: { next: { $ref: '#/definitions/node' } } } },
        additionalProperties: false,
      }),
    ).toEqual(
      declaredWith({
        type: 'object',
        properties: {
          kind: { enum: ['a'] },
          on: { const: true },
          maybe: { type: ['string', 'null'], default: null },
          either: { anyOf: [{ type: 'string' }, { anyOf: [{ $ref: '#/$defs/node' }], description: 'One.' }] },
          base: { anyOf: [{ $ref: '#/$defs/node' }], title: 'Base' },
          list: { type: 'array', items: { $ref: '#/$defs/node' }, uniqueItems: true },
          open: { type: 'object', additionalProperties: { enum: [3] } },
        },
        $defs: { node: { type: 'object', properties: { next: { $ref: '#/$defs/node' } } } },
        additionalProperties: false,
      }),
    );
  });

  it('leave data alone that looks like a schema, and properties that are named like keywords', () => {
    const parameters = {
      type: 'object',
      properties: {
        const: { type: 'string', enum: ['x'], default: { a: { const: 'kept' } }, examples: [{ $ref: 'kept', a: 1 }] },
        $ref: { type: 'string' },
        definitions: { type: 'string' },
      },
    };
    expect(sentWith(parameters)).toEqual(declaredWith(parameters));
  });

  it('keep a property named __proto__ as a property', () => {
    const parameters: object = JSON.parse('{"type":"object","properties":{"__proto__":{"type":"string"}}}');
    expect(JSON.stringify(sentWith(parameters))).toBe(JSON.stringify(declaredWith(parameters)));
  });

  it('are of an object even where the caller left that out', () => {
    expect(sentWith({ $ref: '#/$defs/args', $defs: { args: { type: 'object' } } })).toEqual(
      declaredWith({
        type: 'object',
        $defs: { args: { type: 'object' } },
        anyOf: [{ $ref: '#/$defs/args' }],
      }),
    );
  });
});
