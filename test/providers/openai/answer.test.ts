import { describe, expect, it } from 'vitest';
import { NO_USAGE } from '../../../src/domain/usage.ts';
import { openAiAdapter } from '../../../src/providers/openai/openai.ts';
import { gathered, sample } from '../answers.ts';

const parse = (answer: unknown) => openAiAdapter.parseResponse(gathered(JSON.stringify(answer)));

const withChoice = (choice: unknown) => parse({ choices: [choice] }).choices[0];

describe('parseResponse', () => {
  it('reads a whole answer and keeps the fields that the gateway does not write itself', () => {
    expect(openAiAdapter.parseResponse(gathered(sample('openai-completion.json')))).toEqual({
      model: 'gpt-4.1-2025-04-14',
      choices: [
        {
          index: 0,
          message: {
            role: 'assistant',
            content: 'Hello! How can I assist you today?',
            refusal: null,
            annotations: [],
          },
          logprobs: null,
          finish_reason: 'stop',
        },
      ],
      usage: { ...NO_USAGE, promptTokens: 1519, completionTokens: 110, cachedTokens: 1024, reasoningTokens: 64 },
      fields: { service_tier: 'default', system_fingerprint: 'fp_44709d6fcb', x_new_field: { kept: true } },
    });
  });

  it('reads tool calls, whose end is `tool_calls` even if the upstream says `stop`', () => {
    const { choices } = openAiAdapter.parseResponse(gathered(sample('openai-tools.json')));
    expect(choices).toEqual([
      {
        index: 0,
        message: {
          role: 'assistant',
          content: null,
          tool_calls: [
            {
              id: 'call_abc123',
              type: 'function',
              function: { name: 'get_current_weather', arguments: '{\n"location": "Boston, MA"\n}' },
            },
          ],
        },
        logprobs: null,
        finish_reason: 'tool_calls',
      },
    ]);
  });

  it.each([undefined, 'tool', null])(
    "makes a call of a function 'function', whatever type the upstream states: %s",
    (type) => {
      const call = { id: 'call_1', type, function: { name: 'f', arguments: '{}' } };
      const answer = { choices: [{ message: { content: null, tool_calls: [call] }, finish_reason: 'stop' }] };
      const { choices } = openAiAdapter.parseResponse(gathered(JSON.stringify(answer)));
      expect(choices[0]?.message.tool_calls).toEqual([{ ...call, type: 'function' }]);
    },
  );

  it.each([
    ['stop', 'stop'],
    ['length', 'length'],
    ['tool_calls', 'tool_calls'],
    ['content_filter', 'content_filter'],
    ['function_call', 'tool_calls'],
    ['max_tokens', 'length'],
    ['SAFETY', 'content_filter'],
    ['eos', 'stop'],
    [null, 'stop'],
    [undefined, 'stop'],
  ])('normalises finish_reason %s to %s', (reported, wanted) => {
    expect(withChoice({ message: { content: 'x' }, finish_reason: reported })?.finish_reason).toBe(wanted);
  });

  it.each(['length', 'content_filter'])('lets %s win over tool calls that were cut', (reason) => {
    const message = { tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{' } }] };
    expect(withChoice({ message, finish_reason: reason })?.finish_reason).toBe(reason);
  });

  it('gives thoughts, parts, roles and indices their normal form', () => {
    const choices = [
      {
        message: {
          role: 'model',
          content: [{ type: 'text', text: 'a' }, { type: 'x' }, { text: 'b' }],
          tool_calls: null,
        },
      },
      { message: { content: 'c', reasoning_content: 'hm' }, index: 'one' },
    ];
    expect(parse({ choices }).choices).toEqual([
      { index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'ab' } },
      {
        index: 1,
        finish_reason: 'stop',
        message: { role: 'assistant', content: 'c', reasoning_content: 'hm', reasoning: 'hm' },
      },
    ]);
  });

  it('makes no prototype of a field', () => {
    const answer = '{"__proto__":{"polluted":true},"x":1,"choices":[{"message":{"content":""}}]}';
    const { fields } = openAiAdapter.parseResponse(gathered(answer));
    expect(fields).toEqual({ x: 1 });
    expect('polluted' in fields).toBe(false);
  });

  it('takes an empty text as an answer: a stop sequence may end it at once', () => {
    expect(withChoice({ message: { content: '' } })?.message.content).toBe('');
  });

  it('reads an answer without usage, and one whose usage is no numbers, as one without', () => {
    const choices = [{ message: { content: 'x' } }];
    expect(parse({ choices }).usage).toBeUndefined();
    expect(parse({ choices, usage: { prompt_tokens: '5', completion_tokens: -1 } }).usage).toBeUndefined();
  });

  it.each([
    ['no JSON', '{"choices":['],
    ['nothing', ''],
    ['HTML', '<html></html>'],
    ['a list', '[]'],
    ['null', 'null'],
    ['no choices', '{"object":"chat.completion"}'],
    ['an empty list of choices', '{"choices":[]}'],
    ['choices that are no list', '{"choices":{"0":{}}}'],
    ['a choice that is none', '{"choices":[null]}'],
    ['a choice without a message', '{"choices":[{"index":0}]}'],
    ['content that is no text', '{"choices":[{"message":{"content":{"a":1}}}]}'],
    ['tool calls that are none', '{"choices":[{"message":{"content":"","tool_calls":["x"]}}]}'],
    ['an error', '{"error":{"message":"Invalid key sk-123456789"}}'],
    ['an error with choices', '{"error":"x","choices":[{"message":{"content":"x"}}]}'],
    ['too many choices', JSON.stringify({ choices: new Array(129).fill({ message: { content: '' } }) })],
  ])('refuses %s as a bad response that may be tried elsewhere', (_name, text) => {
    expect(() => openAiAdapter.parseResponse(gathered(text))).toThrow(
      expect.objectContaining({ name: 'UpstreamError', errorType: 'bad_response', retryable: true, status: 200 }),
    );
  });

  it('tells nothing of an error that came as a success', () => {
    expect(() => parse({ error: { message: 'Invalid key sk-123456789' } })).toThrow(
      /^The provider reported an error inside a successful answer\.$/,
    );
  });
});
