import { describe, expect, it } from 'vitest';
import { NO_USAGE } from '../../../src/domain/usage.ts';
import { googleAdapter } from '../../../src/providers/google/google.ts';
import { gathered, sample } from '../answers.ts';
import { answered, answeredSample } from '../google-samples.ts';

const candidate = (parts: readonly object[], finishReason = 'STOP', more: object = {}) => ({
  content: { role: 'model', parts },
  finishReason,
  ...more,
});

describe('parseResponse', () => {
  it('reads text, thoughts, signature and every number of the usage', () => {
    expect(answeredSample('answer.json')).toEqual({
      model: 'gemini-3-flash-preview',
      choices: [
        {
          index: 0,
          finish_reason: 'stop',
          message: {
            role: 'assistant',
            content: '9.9 is larger.',
            reasoning: 'Comparing the two decimals. Nine tenths is more.',
            reasoning_details: [{ type: 'reasoning.encrypted', data: 'c2lnLXRleHQ=', format: 'google', index: 0 }],
          },
        },
      ],
      usage: {
        ...NO_USAGE,
        promptTokens: 1240,
        completionTokens: 108,
        reasoningTokens: 100,
        cachedTokens: 1024,
        cachedAudioTokens: 40,
        promptAudioTokens: 60,
        promptImageTokens: 268,
        promptVideoTokens: 40,
      },
      fields: { responseId: 'xYzT1' },
    });
  });

  it('reads parallel calls: an id that came is kept, others are made, and the signature stands on its call', () => {
    expect(answeredSample('parallel-calls.json')).toEqual({
      model: 'gemini-3-pro-preview',
      choices: [
        {
          index: 0,
          finish_reason: 'tool_calls',
          message: {
            role: 'assistant',
            content: null,
            tool_calls: [
              {
                id: 'fc_a1',
                type: 'function',
                function: { name: 'get_weather', arguments: '{"city":"Ulm"}' },
                extra_content: { google: { thought_signature: 'c2lnLWNhbGw=' } },
              },
              { id: 'call_1', type: 'function', function: { name: 'get_weather', arguments: '{"city":"Graz"}' } },
              { id: 'call_2', type: 'function', function: { name: 'get_time', arguments: '{}' } },
            ],
          },
        },
      ],
      usage: { ...NO_USAGE, promptTokens: 60, completionTokens: 50, reasoningTokens: 20 },
      fields: { responseId: 'pQ7' },
    });
  });

  it('makes ids for tool calls that never come twice', () => {
    const ids = [1, 2, 3].flatMap(() => {
      const [choice] = googleAdapter.parseResponse(gathered(sample('google/parallel-calls.json'))).choices;
      return choice?.message.tool_calls?.map(({ id }) => id).filter((id) => id !== 'fc_a1') ?? [];
    });
    expect(new Set(ids).size).toBe(6);
    for (const id of ids) expect(id).toMatch(/^call_[0-9a-f]{32}$/);
  });

  it('reads images as data URLs without the drafts among the thoughts, and counts them', () => {
    expect(answeredSample('image.json')).toEqual({
      model: 'gemini-3-pro-image-preview',
      choices: [
        {
          index: 0,
          finish_reason: 'stop',
          message: {
            role: 'assistant',
            content: 'Here is the lighthouse.',
            images: [
              {
                type: 'image_url',
                image_url: { url: 'data:image/png;base64,aVZCT1J3MEs=' },
                extra_content: { google: { thought_signature: 'c2lnLWltYWdl' } },
              },
            ],
          },
        },
      ],
      usage: { ...NO_USAGE, promptTokens: 12, completionTokens: 1298, completionImageTokens: 1290, images: 1 },
      fields: { responseId: 'iM9' },
    });
  });

  it('answers a blocked prompt, which has no candidate, with an empty choice that says so', () => {
    expect(answeredSample('blocked.json')).toEqual({
      model: 'gemini-2.5-flash',
      choices: [
        {
          index: 0,
          finish_reason: 'content_filter',
          message: {
            role: 'assistant',
            content: null,
            refusal: 'The provider blocked the prompt: PROHIBITED_CONTENT.',
          },
        },
      ],
      usage: { ...NO_USAGE, promptTokens: 17 },
      fields: {},
    });
  });

  it('keeps what a searched answer rests on, and counts its searches as they are charged', () => {
    const grounding = {
      webSearchQueries: ['euro 2024 winner', '', 'euro 2024 final', 'euro 2024 winner'],
      groundingChunks: [{ web: { uri: 'https://news.example/final', title: 'news.example' } }],
    };
    expect(answeredSample('grounded.json')).toEqual({
      model: 'gemini-3-flash-preview',
      choices: [
        {
          index: 0,
          finish_reason: 'stop',
          message: {
            role: 'assistant',
            content: 'Spain won.',
            extra_content: { google: { grounding_metadata: grounding } },
          },
        },
      ],
      usage: { ...NO_USAGE, promptTokens: 9, completionTokens: 4, webSearches: 2 },
      fields: {},
    });
    const older = sample('google/grounded.json').replace('gemini-3-flash-preview', 'gemini-2.5-flash');
    expect(googleAdapter.parseResponse(gathered(older)).usage?.webSearches).toBe(1);
  });

  it('reads several candidates, each as the choice of its number', () => {
    const answer = {
      candidates: [
        candidate([{ text: 'b' }], 'STOP', { index: 1 }),
        candidate([{ text: 'a' }], 'MAX_TOKENS', { index: 0 }),
      ],
    };
    expect(answered(answer)).toEqual({
      model: undefined,
      choices: [
        { index: 1, finish_reason: 'stop', message: { role: 'assistant', content: 'b' } },
        { index: 0, finish_reason: 'length', message: { role: 'assistant', content: 'a' } },
      ],
      usage: undefined,
      fields: {},
    });
  });

  it.each([
    ['STOP', 'stop'],
    ['MAX_TOKENS', 'length'],
    ['SAFETY', 'content_filter'],
    ['RECITATION', 'content_filter'],
    ['BLOCKLIST', 'content_filter'],
    ['PROHIBITED_CONTENT', 'content_filter'],
    ['SPII', 'content_filter'],
    ['IMAGE_SAFETY', 'content_filter'],
    ['LANGUAGE', 'stop'],
    ['OTHER', 'stop'],
    ['SOMETHING_NEW', 'stop'],
    ['FINISH_REASON_UNSPECIFIED', 'stop'],
  ])('ends %s as %s', (reported, wanted) => {
    expect(answered({ candidates: [candidate([{ text: 'a' }], reported)] }).choices[0]?.finish_reason).toBe(wanted);
  });

  it('lets a cut or filtered end win over tool calls', () => {
    const parts = [{ functionCall: { name: 'f' } }];
    const ends = ['MAX_TOKENS', 'SAFETY', 'OTHER'].map(
      (reported) => answered({ candidates: [candidate(parts, reported)] }).choices[0]?.finish_reason,
    );
    expect(ends).toEqual(['length', 'content_filter', 'tool_calls']);
  });

  it('reads a filtered candidate without content', () => {
    expect(answered({ candidates: [{ finishReason: 'SAFETY', index: 0 }] }).choices).toEqual([
      { index: 0, finish_reason: 'content_filter', message: { role: 'assistant', content: null } },
    ]);
  });

  it('reads the likelihoods of tokens', () => {
    const logprobsResult = {
      chosenCandidates: [{ token: 'Hi', tokenId: 7, logProbability: -0.1 }],
      topCandidates: [
        {
          candidates: [
            { token: 'Hi', logProbability: -0.1 },
            { token: 'Ho', logProbability: -2 },
          ],
        },
      ],
    };
    expect(
      answered({ candidates: [candidate([{ text: 'Hi' }], 'STOP', { logprobsResult })] }).choices[0]?.logprobs,
    ).toEqual({
      content: [
        {
          token: 'Hi',
          logprob: -0.1,
          bytes: null,
          top_logprobs: [
            { token: 'Hi', logprob: -0.1, bytes: null },
            { token: 'Ho', logprob: -2, bytes: null },
          ],
        },
      ],
      refusal: null,
    });
  });

  it.each([
    ['no prompt count', { candidatesTokenCount: 3 }, undefined],
    ['a prompt alone', { promptTokenCount: 3 }, { ...NO_USAGE, promptTokens: 3 }],
    [
      'counts that are none',
      { promptTokenCount: 3, candidatesTokenCount: -1, thoughtsTokenCount: 'x' },
      { ...NO_USAGE, promptTokens: 3 },
    ],
    [
      'audio',
      { promptTokenCount: 3, candidatesTokenCount: 9, candidatesTokensDetails: [{ modality: 'AUDIO', tokenCount: 9 }] },
      { ...NO_USAGE, promptTokens: 3, completionTokens: 9, completionAudioTokens: 9 },
    ],
  ])('reads usage with %s', (_name, usageMetadata, wanted) => {
    expect(answered({ candidates: [candidate([{ text: 'a' }])], usageMetadata }).usage).toEqual(wanted);
  });

  it('keeps no field that the gateway writes itself', () => {
    const own = { id: 'x', object: 'x', created: 1, metadata: {}, choices: [], usage: {}, model: 'x' };
    expect(answered({ ...own, candidates: [candidate([{ text: 'a' }])], createTime: 't' }).fields).toEqual({
      createTime: 't',
    });
  });

  it.each([
    ['no JSON', '{"candidates":[{"content"'],
    ['no object', '[]'],
    ['no candidate', '{"usageMetadata":{"promptTokenCount":1}}'],
    ['an empty list of candidates', '{"candidates":[],"promptFeedback":{}}'],
    ['candidates that are no list', '{"candidates":{}}'],
    ['a candidate that is no object', '{"candidates":["a"]}'],
    ['parts that are no list', '{"candidates":[{"content":{"parts":{}}}]}'],
    ['text that is no text', '{"candidates":[{"content":{"parts":[{"text":7}]}}]}'],
    ['a call without a name', '{"candidates":[{"content":{"parts":[{"functionCall":{"args":{}}}]}}]}'],
    [
      'arguments that are no object',
      '{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":[1]}}]}}]}',
    ],
    ['a call that the provider could not read', '{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL"}]}'],
    ['a call of no tool', '{"candidates":[{"finishReason":"UNEXPECTED_TOOL_CALL"}]}'],
    ['an error without a code', '{"error":"quota"}'],
  ])('refuses %s as a bad response', (_name, text) => {
    expect(() => googleAdapter.parseResponse(gathered(text))).toThrow(
      expect.objectContaining({ name: 'UpstreamError', errorType: 'bad_response', retryable: true }),
    );
  });

  it('reads an error inside a success as what its code says, and keeps its text back', () => {
    const text = '{"error":{"code":503,"message":"key AIzaTest1234567","status":"UNAVAILABLE"}}';
    expect(() => googleAdapter.parseResponse(gathered(text))).toThrow(
      expect.objectContaining({ errorType: 'upstream_error', status: 503, message: 'The provider failed: status 503' }),
    );
  });
});
