import { describe, expect, it } from 'vitest';
import { anthropicAdapter } from '../../../src/providers/anthropic/anthropic.ts';
import { asked, BARE, mappingTo, NEWEST, sent, text } from '../anthropic-calls.ts';

const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const WEATHER = { type: 'function', function: { name: 'weather', description: 'Tells it.', parameters } };
const NOW = { type: 'function', function: { name: 'now' } };
const WEATHER_TOOL = { name: 'weather', description: 'Tells it.', input_schema: parameters };
const NOW_TOOL = { name: 'now', input_schema: { type: 'object', properties: {} } };
const TOOLS = { tools: [WEATHER, NOW] };
const SENT_TOOLS = { tools: [WEATHER_TOOL, NOW_TOOL] };
const OLD = 'claude-sonnet-4-20250514';
const to = (externalId: string) => ({ mapping: mappingTo(externalId) });

describe('tools', () => {
  it('are sent with a schema each, their cache marks, and the API’s own as they came', () => {
    const cache = { type: 'ephemeral', ttl: '1h' };
    const search = { type: 'web_search_20250305', name: 'web_search', max_uses: 2 };
    const untyped = { type: 'function', function: { name: 'f', parameters: { properties: {} } } };
    expect(sent({ tools: [{ ...WEATHER, cache_control: cache }, NOW, search, untyped] })).toEqual({
      ...BARE,
      tools: [
        { ...WEATHER_TOOL, cache_control: cache },
        NOW_TOOL,
        search,
        { name: 'f', input_schema: { type: 'object', properties: {} } },
      ],
    });
  });

  it('that are strict have a schema that the API enforces, where the model can', () => {
    const strict = { ...WEATHER, function: { ...WEATHER.function, strict: true } };
    const closed = { ...WEATHER_TOOL, input_schema: { ...parameters, additionalProperties: false }, strict: true };
    expect(sent({ tools: [strict] })).toEqual({ ...BARE, tools: [closed] });
    expect(sent({ tools: [strict] }, to(OLD))).toEqual({ ...BARE, model: OLD, tools: [WEATHER_TOOL] });
  });

  it('of the old form are tools', () => {
    expect(sent({ functions: [WEATHER.function], function_call: { name: 'weather' } })).toEqual({
      ...BARE,
      tools: [WEATHER_TOOL],
      tool_choice: { type: 'tool', name: 'weather' },
    });
  });

  it('that are custom are refused', () => {
    const custom = { type: 'custom', custom: { name: 'x' } };
    expect(anthropicAdapter.unsupported(asked({ tools: [custom] }))?.param).toBe('/tools/0/type');
  });
});

describe('tool_choice', () => {
  it.each([
    ['auto', { type: 'auto' }],
    ['none', { type: 'none' }],
    ['required', { type: 'any' }],
    [
      { type: 'function', function: { name: 'now' } },
      { type: 'tool', name: 'now' },
    ],
  ])('%j is sent as %j', (choice, wanted) => {
    expect(sent({ ...TOOLS, tool_choice: choice })).toEqual({ ...BARE, ...SENT_TOOLS, tool_choice: wanted });
  });

  it('of some of the tools leaves the others out', () => {
    const allowed = { mode: 'required', tools: [{ type: 'function', function: { name: 'now' } }] };
    expect(sent({ ...TOOLS, tool_choice: { type: 'allowed_tools', allowed_tools: allowed } })).toEqual({
      ...BARE,
      tools: [NOW_TOOL],
      tool_choice: { type: 'any' },
    });
  });

  it('without tools is left out', () => {
    expect(sent({ tool_choice: 'auto', tools: [] })).toEqual(BARE);
  });

  it.each([NEWEST, 'claude-fable-5-1', 'claude-sonnet-5-5'])(
    'that forces a call is left to %s, which refuses one',
    (model) => {
      expect(sent({ ...TOOLS, tool_choice: 'required' }, to(model))).toEqual({
        ...BARE,
        model,
        ...SENT_TOOLS,
        tool_choice: { type: 'auto' },
      });
    },
  );

  it.each(['claude-opus-5', 'claude-haiku-5-5', 'claude-fable-5'])('that forces a call is sent to %s', (model) => {
    expect(sent({ ...TOOLS, tool_choice: 'required' }, to(model))).toMatchObject({ tool_choice: { type: 'any' } });
  });

  it.each(['sometimes', { type: 'custom', custom: { name: 'x' } }])('%j is refused', (choice) => {
    expect(anthropicAdapter.unsupported(asked({ ...TOOLS, tool_choice: choice }))?.param).toBe('/tool_choice');
  });

  it.each([
    [undefined, { type: 'auto', disable_parallel_tool_use: true }],
    ['required', { type: 'any', disable_parallel_tool_use: true }],
    ['none', { type: 'none' }],
  ])('%j of calls one by one is sent as %j', (choice, wanted) => {
    const fields = { ...TOOLS, tool_choice: choice, parallel_tool_calls: false };
    expect(sent(fields)).toEqual({ ...BARE, ...SENT_TOOLS, tool_choice: wanted });
  });
});

describe('response_format', () => {
  const schema = {
    $schema: 'http://json-schema.org/draft-07/schema#',
    type: 'object',
    description: 'A person.',
    properties: {
      name: { type: 'string', minLength: 1, format: 'email' },
      age: { type: ['integer', 'null'], minimum: 0, maximum: 150, description: 'In years.' },
      tags: { type: 'array', items: { $ref: '#/$defs/tag' }, minItems: 1, maxItems: 3 },
      pair: { type: 'array', items: { type: 'string' }, minItems: 2 },
      kind: { oneOf: [{ const: 'a' }, { type: 'object', properties: {}, additionalProperties: true }] },
      day: { type: 'string', format: 'iri', pattern: '^a' },
    },
    required: ['name'],
    $defs: { tag: { type: 'string', enum: ['x', 'y'] } },
  };
  const format = { type: 'json_schema', json_schema: { name: 'person', strict: true, schema } };

  it('of a schema is enforced within the subset that the API takes; the rest goes into the description', () => {
    expect(sent({ response_format: format })).toEqual({
      ...BARE,
      output_config: {
        format: {
          type: 'json_schema',
          schema: {
            type: 'object',
            description: 'A person.',
            additionalProperties: false,
            properties: {
              name: { type: 'string', format: 'email', description: 'Must also satisfy: {"minLength":1}' },
              age: {
                type: ['integer', 'null'],
                description: 'In years.\nMust also satisfy: {"minimum":0,"maximum":150}',
              },
              tags: {
                type: 'array',
                items: { $ref: '#/$defs/tag' },
                minItems: 1,
                description: 'Must also satisfy: {"maxItems":3}',
              },
              pair: { type: 'array', items: { type: 'string' }, description: 'Must also satisfy: {"minItems":2}' },
              kind: { anyOf: [{ const: 'a' }, { type: 'object', properties: {}, additionalProperties: false }] },
              day: { type: 'string', pattern: '^a', description: 'Must also satisfy: {"format":"iri"}' },
            },
            required: ['name'],
            $defs: { tag: { type: 'string', enum: ['x', 'y'] } },
          },
        },
      },
    });
  });

  it('goes with an effort', () => {
    expect(sent({ response_format: format, reasoning_effort: 'low' }, to(NEWEST))).toMatchObject({
      output_config: { effort: 'low', format: { type: 'json_schema' } },
    });
  });

  const answer = { name: 'structured_answer_for_gateway', description: 'Gives the answer.', input_schema: schema };

  it('of a schema is a tool that must be called, where the model has no other way, and then it does not think', () => {
    expect(sent({ response_format: format, reasoning_effort: 'high', max_tokens: 9000 }, to(OLD))).toEqual({
      ...BARE,
      model: OLD,
      max_tokens: 9000,
      tools: [answer],
      tool_choice: { type: 'tool', name: answer.name },
    });
  });

  it.each([
    [undefined, { type: 'any' }],
    ['none', { type: 'tool', name: answer.name }],
    [
      { type: 'function', function: { name: 'now' } },
      { type: 'tool', name: 'now' },
    ],
  ])('with tools and the choice %j forces %j', (choice, wanted) => {
    expect(sent({ ...TOOLS, tool_choice: choice, response_format: format }, to(OLD))).toEqual({
      ...BARE,
      model: OLD,
      tools: [...SENT_TOOLS.tools, answer],
      tool_choice: wanted,
    });
  });

  it.each([{ type: 'json_object' }, { type: 'json_schema', json_schema: { name: 'x' } }])(
    'without a schema is asked for in the system message: %j',
    (wanted) => {
      const messages = [
        { role: 'system', content: 'Be kind.' },
        { role: 'user', content: 'Hi' },
      ];
      const asked = 'Answer with one valid JSON object and nothing else: no words around it, no code fence.';
      expect(sent({ messages, response_format: wanted })).toEqual({ ...BARE, system: [text('Be kind.'), text(asked)] });
    },
  );
});
