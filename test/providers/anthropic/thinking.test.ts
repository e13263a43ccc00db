import { describe, expect, it } from 'vitest';
import { anthropicAdapter } from '../../../src/providers/anthropic/anthropic.ts';
import { record } from '../../../src/providers/wire/fields.ts';
import { ADAPTIVE, asked, BARE, BUDGET, mappingTo, NEWEST, sent, text } from '../anthropic-calls.ts';

const LARGE = { maxOutput: 64_000 };
const to = (externalId: string, more: object = LARGE) => ({ mapping: mappingTo(externalId, more) });
const budget = (tokens: number) => ({ type: 'enabled', budget_tokens: tokens });
const ADAPT = { type: 'adaptive', display: 'summarized' };
const LOOK = { type: 'function', function: { name: 'look' } };
const LOOK_TOOL = { name: 'look', input_schema: { type: 'object', properties: {} } };

describe('reasoning_effort', () => {
  it.each([
    ['minimal', 1024],
    ['low', 2048],
    ['medium', 8192],
    ['high', 16_384],
    ['xhigh', 32_768],
    ['max', 32_768],
  ])('%s is a budget of %i tokens for a model that wants one', (effort, tokens) => {
    expect(sent({ reasoning_effort: effort }, to(BUDGET))).toEqual({
      ...BARE,
      max_tokens: 64_000,
      thinking: budget(tokens),
    });
  });

  it('shrinks its budget to leave a quarter of max_tokens, which is never raised', () => {
    const fields = { reasoning_effort: 'high', max_completion_tokens: 4000 };
    expect(sent(fields, to(BUDGET))).toEqual({ ...BARE, max_tokens: 4000, thinking: budget(3000) });
  });

  it('is left out where max_tokens has no room for the least budget', () => {
    expect(sent({ reasoning_effort: 'high', max_tokens: 1300 }, to(BUDGET))).toEqual({ ...BARE, max_tokens: 1300 });
  });

  it.each([
    [ADAPTIVE, 'low', { thinking: ADAPT, output_config: { effort: 'low' } }],
    [ADAPTIVE, 'minimal', { thinking: ADAPT, output_config: { effort: 'low' } }],
    [ADAPTIVE, 'xhigh', { thinking: ADAPT, output_config: { effort: 'high' } }],
    [ADAPTIVE, 'max', { thinking: ADAPT, output_config: { effort: 'max' } }],
    [NEWEST, 'xhigh', { thinking: ADAPT, output_config: { effort: 'xhigh' } }],
    ['claude-mythos-preview', 'high', { thinking: ADAPT, output_config: { effort: 'high' } }],
    [BUDGET, 'none', {}],
    [ADAPTIVE, 'none', {}],
    ['claude-sonnet-5', 'none', { thinking: { type: 'disabled' } }],
    ['claude-haiku-5-5', 'none', { thinking: { type: 'disabled' } }],
    ['claude-sonnet-5-5', 'none', { thinking: { type: 'between_tools' } }],
    [NEWEST, 'none', { output_config: { effort: 'low' } }],
    ['claude-fable-5', 'none', { output_config: { effort: 'low' } }],
    ['claude-3-5-sonnet-20241022', 'high', {}],
    ['kimi-k2', 'low', { thinking: budget(2048) }],
  ])('of %s is %s', (model, effort, wanted) => {
    expect(sent({ reasoning_effort: effort }, to(model))).toEqual({ ...BARE, model, max_tokens: 64_000, ...wanted });
  });

  it('is idle for a mapping that does not reason', () => {
    expect(sent({ reasoning_effort: 'high' }, to(BUDGET, { reasoning: false }))).toEqual(BARE);
  });
});

describe('the caller’s own `thinking`', () => {
  it('goes on as it is, before any effort', () => {
    const thinking = { type: 'enabled', budget_tokens: 1500, display: 'omitted' };
    expect(sent({ thinking, reasoning_effort: 'high' }, to(BUDGET))).toEqual({ ...BARE, max_tokens: 64_000, thinking });
  });

  it('goes with the effort where the model takes one as well', () => {
    const thinking = { type: 'adaptive', display: 'omitted' };
    expect(sent({ thinking, reasoning_effort: 'low', output_config: { task_budget: 1 } }, to(ADAPTIVE))).toEqual({
      ...BARE,
      model: ADAPTIVE,
      max_tokens: 64_000,
      thinking,
      output_config: { effort: 'low', task_budget: 1 },
    });
  });

  it('that turns it off binds nothing', () => {
    const fields = { thinking: { type: 'disabled' }, temperature: 0.5 };
    expect(sent(fields, to(BUDGET))).toEqual({ ...BARE, max_tokens: 64_000, ...fields });
  });
});

describe('while thinking', () => {
  it('temperature, top_k and a low top_p are left out', () => {
    const sampling = { temperature: 0.2, top_k: 5, top_p: 0.9 };
    const wanted = { ...BARE, max_tokens: 64_000, thinking: budget(2048) };
    expect(sent({ ...sampling, reasoning_effort: 'low' }, to(BUDGET))).toEqual(wanted);
    expect(sent({ top_p: 0.97, reasoning_effort: 'low' }, to(BUDGET))).toEqual({ ...wanted, top_p: 0.97 });
  });

  it.each(['required', { type: 'function', function: { name: 'look' } }])(
    'with a budget the forced choice %j is left to the model',
    (choice) => {
      const fields = { reasoning_effort: 'low', tools: [LOOK], tool_choice: choice };
      expect(sent(fields, to(BUDGET))).toEqual({
        ...BARE,
        max_tokens: 64_000,
        thinking: budget(2048),
        tools: [LOOK_TOOL],
        tool_choice: { type: 'auto' },
      });
    },
  );

  it('by an effort a choice can be forced', () => {
    const fields = { reasoning_effort: 'low', tools: [LOOK], tool_choice: 'required' };
    expect(sent(fields, to(ADAPTIVE))).toMatchObject({ thinking: ADAPT, tool_choice: { type: 'any' } });
  });
});

describe('a turn with tool calls that lost its thoughts', () => {
  const calls = [{ id: 'a', type: 'function', function: { name: 'look', arguments: '{}' } }];
  const details = [{ type: 'reasoning.text', text: 'Hm.', signature: 'c2ln', format: 'anthropic', index: 0 }];
  const result = { role: 'tool', tool_call_id: 'a', content: 'x' };
  const messages = (more: object, ...after: object[]) => [
    { role: 'user', content: 'Hi' },
    { role: 'assistant', content: null, tool_calls: calls, ...more },
    result,
    ...after,
  ];
  const thinkingOf = (body: unknown): unknown => record(body).thinking;

  it('is answered without a budget to think with, because the API would refuse one', () => {
    expect(thinkingOf(sent({ reasoning_effort: 'low', messages: messages({}) }, to(BUDGET)))).toBeUndefined();
    expect(thinkingOf(sent({ thinking: budget(2000), messages: messages({}) }, to(BUDGET)))).toBeUndefined();
  });

  it('is answered with one when it has its thoughts', () => {
    const kept = messages({ reasoning_details: details });
    expect(thinkingOf(sent({ reasoning_effort: 'low', messages: kept }, to(BUDGET)))).toEqual(budget(2048));
  });

  it('is no matter once it is over, nor to a model that thinks by an effort', () => {
    const over = messages({}, { role: 'assistant', content: 'So.' }, { role: 'user', content: 'And?' });
    expect(thinkingOf(sent({ reasoning_effort: 'low', messages: over }, to(BUDGET)))).toEqual(budget(2048));
    expect(thinkingOf(sent({ reasoning_effort: 'low', messages: messages({}) }, to(ADAPTIVE)))).toEqual(ADAPT);
  });

  it('that is to be continued goes without a budget too', () => {
    const prefilled = [
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: 'So' },
    ];
    expect(sent({ reasoning_effort: 'low', messages: prefilled }, to(BUDGET))).toEqual({
      ...BARE,
      max_tokens: 64_000,
      messages: [...BARE.messages, { role: 'assistant', content: [text('So')] }],
    });
  });

  it('does not make an unknown effort known', () => {
    const call = asked({ reasoning_effort: 'ultra' }, to(BUDGET));
    expect(anthropicAdapter.unsupported(call)?.param).toBe('/reasoning_effort');
  });
});
