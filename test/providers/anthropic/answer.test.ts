import { describe, expect, it } from 'vitest';
import { NO_USAGE } from '../../../src/domain/usage.ts';
import { anthropicAdapter } from '../../../src/providers/anthropic/anthropic.ts';
import { gathered, sample } from '../answers.ts';

const parse = (answer: unknown) => anthropicAdapter.parseResponse(gathered(JSON.stringify(answer)));
const ofSample = (name: string) => anthropicAdapter.parseResponse(gathered(sample(`anthropic/${name}`)));
const ended = (reason: unknown, ...content: object[]) => parse({ content, stop_reason: reason }).choices;
const CALL = { type: 'tool_use', id: 'a', name: 'look', input: {} };

describe('parseResponse', () => {
  it('reads a whole answer: texts joined, and the cached parts of the prompt counted in', () => {
    expect(ofSample('answer.json')).toEqual({
      model: 'claude-haiku-4-5-20251001',
      choices: [
        { index: 0, message: { role: 'assistant', content: 'Good evening. How can I help?' }, finish_reason: 'stop' },
      ],
      usage: {
        ...NO_USAGE,
        promptTokens: 5521,
        completionTokens: 305,
        reasoningTokens: 12,
        cachedTokens: 4000,
        cacheWrite5mTokens: 1200,
        cacheWrite1hTokens: 300,
      },
      fields: {},
    });
  });

  it('reads thoughts with their signatures and parallel tool calls', () => {
    expect(ofSample('tools.json')).toEqual({
      model: 'claude-sonnet-4-6',
      choices: [
        {
          index: 0,
          message: {
            role: 'assistant',
            content: 'I look both up.',
            reasoning: 'Two cities,\nso two calls.',
            reasoning_details: [
              {
                type: 'reasoning.text',
                text: 'Two cities,\nso two calls.',
                signature: 'EqQBCgIYAhIM',
                format: 'anthropic',
                index: 0,
              },
              { type: 'reasoning.encrypted', data: 'EmwKAhgBEgy3va', format: 'anthropic', index: 1 },
            ],
            tool_calls: [
              {
                id: 'toolu_01A',
                type: 'function',
                function: { name: 'weather', arguments: '{"city":"Paris","days":2}' },
              },
              { id: 'toolu_01B', type: 'function', function: { name: 'now', arguments: '{}' } },
            ],
          },
          finish_reason: 'tool_calls',
        },
      ],
      usage: { ...NO_USAGE, promptTokens: 400, completionTokens: 90 },
      fields: {},
    });
  });

  it('passes over the provider’s own tools and blocks of tomorrow, and tells the sources of a text', () => {
    const cited = { start_index: 10, end_index: 26 };
    expect(ofSample('search.json')).toEqual({
      model: 'claude-opus-5',
      choices: [
        {
          index: 0,
          message: {
            role: 'assistant',
            content: 'I search. It is 828 m high.',
            annotations: [
              { type: 'url_citation', url_citation: { url: 'https://news.example/tower', title: 'Towers', ...cited } },
              {
                type: 'url_citation',
                url_citation: { url: 'https://list.example/', title: 'https://list.example/', ...cited },
              },
            ],
          },
          finish_reason: 'stop',
        },
      ],
      usage: { ...NO_USAGE, promptTokens: 100, completionTokens: 50, webSearches: 2 },
      fields: { container: { id: 'c_1', expires_at: '2026-11-21T12:00:00Z' } },
    });
  });

  it.each([
    ['end_turn', 'stop'],
    ['stop_sequence', 'stop'],
    ['pause_turn', 'stop'],
    ['max_tokens', 'length'],
    ['model_context_window_exceeded', 'length'],
    ['refusal', 'content_filter'],
    ['reason_of_tomorrow', 'stop'],
    [null, 'stop'],
  ])('reads the stop reason %s as %s', (reason, wanted) => {
    const message = { role: 'assistant', content: 'x' };
    expect(ended(reason, { type: 'text', text: 'x' })).toEqual([{ index: 0, message, finish_reason: wanted }]);
  });

  it.each([
    ['tool_use', 'tool_calls'],
    ['end_turn', 'tool_calls'],
    ['max_tokens', 'length'],
    ['refusal', 'content_filter'],
  ])('reads tool calls that ended with %s as %s', (reason, wanted) => {
    const calls = [{ id: 'a', type: 'function', function: { name: 'look', arguments: '{}' } }];
    const message = { role: 'assistant', content: null, tool_calls: calls };
    expect(ended(reason, CALL)).toEqual([{ index: 0, message, finish_reason: wanted }]);
  });

  it('tells why the provider refused, and takes an empty answer as one', () => {
    const details = { type: 'refusal', category: 'cyber', explanation: 'Not this.' };
    expect(parse({ content: [], stop_reason: 'refusal', stop_details: details })).toEqual({
      model: undefined,
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: '', refusal: 'Not this.' },
          finish_reason: 'content_filter',
        },
      ],
      usage: undefined,
      fields: { stop_details: details },
    });
  });

  it('gives an answer that came as a forced call back as content', () => {
    const answer = { ...CALL, name: 'structured_answer_for_gateway', input: { name: 'Ada', age: 36 } };
    const message = { role: 'assistant', content: '{"name":"Ada","age":36}' };
    expect(ended('tool_use', answer)).toEqual([{ index: 0, message, finish_reason: 'stop' }]);
  });

  it.each([
    ['no JSON', '{"content":['],
    ['nothing', ''],
    ['HTML', '<html></html>'],
    ['a list', '[]'],
    ['no content', '{"type":"message"}'],
    ['content that is no list', '{"content":"x"}'],
    ['a block that is none', '{"content":[null]}'],
    ['a call without an id', '{"content":[{"type":"tool_use","name":"x"}]}'],
    ['too many blocks', JSON.stringify({ content: new Array(1001).fill({ type: 'text', text: '' }) })],
  ])('refuses %s as a bad response that may be tried elsewhere', (_name, body) => {
    expect(() => anthropicAdapter.parseResponse(gathered(body))).toThrow(
      expect.objectContaining({ name: 'UpstreamError', errorType: 'bad_response', retryable: true, status: 200 }),
    );
  });

  it('takes an error that came as a success for that error', () => {
    const body = JSON.stringify({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } });
    expect(() => anthropicAdapter.parseResponse(gathered(body))).toThrow(
      expect.objectContaining({
        errorType: 'upstream_error',
        retryable: true,
        status: 529,
        message: 'The provider failed: Overloaded',
      }),
    );
  });
});
