import { describe, expect, it } from 'vitest';
import { googleAdapter } from '../../../src/providers/google/google.ts';
import { chatCall, ENDPOINT, GEMINI_2_5, GEMINI_3, sentBody, USER_TURN } from '../google-samples.ts';

const config = (fields: object, externalId?: string) => sentBody(fields, externalId);
const withConfig = (generationConfig: object) => ({ contents: [USER_TURN], generationConfig });

describe('buildRequest', () => {
  it('makes a whole request, with the key in a header and never in the address', () => {
    expect(googleAdapter.buildRequest(chatCall({}), ENDPOINT)).toEqual({
      origin: 'https://google.example',
      path: '/v1beta/models/gemini-3-flash-preview:generateContent',
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json', 'x-goog-api-key': 'AIzaTest' },
      body: '{"contents":[{"role":"user","parts":[{"text":"Hi"}]}]}',
      stream: false,
      addresses: 'trusted',
    });
  });

  it('asks for server-sent events where a stream is wanted, and sends no key to an upstream that asks for none', () => {
    const { base, addresses } = ENDPOINT;
    expect(googleAdapter.buildRequest(chatCall({ stream: true }), { base, addresses })).toEqual({
      origin: 'https://google.example',
      path: '/v1beta/models/gemini-3-flash-preview:streamGenerateContent?alt=sse',
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'text/event-stream' },
      body: '{"contents":[{"role":"user","parts":[{"text":"Hi"}]}]}',
      stream: true,
      addresses: 'trusted',
    });
  });

  it.each([
    ['', 'gemini-x', '/v1beta/models/gemini-x:generateContent'],
    ['/v1beta', 'gemini-x', '/v1beta/models/gemini-x:generateContent'],
    ['/v1', 'gemini-x', '/v1/models/gemini-x:generateContent'],
    ['/proxy', 'gemini-x', '/proxy/v1beta/models/gemini-x:generateContent'],
    ['', 'models/gemini-x', '/v1beta/models/gemini-x:generateContent'],
    ['', 'tunedModels/a', '/v1beta/tunedModels/a:generateContent'],
    ['', 'a:b@c', '/v1beta/models/a%3Ab%40c:generateContent'],
  ])('under the base path %j calls %s at %s', (path, externalId, wanted) => {
    const endpoint = { ...ENDPOINT, base: { origin: 'https://google.example', path } };
    expect(googleAdapter.buildRequest(chatCall({}, externalId), endpoint).path).toBe(wanted);
  });

  it('leaves the request as it was', () => {
    const call = chatCall({ tools: [{ type: 'function', function: { name: 'f', parameters: { const: 1 } } }] });
    const before = JSON.stringify(call.request);
    googleAdapter.buildRequest(call, ENDPOINT);
    expect(JSON.stringify(call.request)).toBe(before);
  });
});

describe('generationConfig', () => {
  it('has every setting under its name there', () => {
    const fields = {
      temperature: 0,
      top_p: 0.9,
      top_k: 40,
      max_tokens: 7,
      stop: 'END',
      n: 2,
      seed: 5,
      presence_penalty: 0.5,
      frequency_penalty: -0.5,
      logprobs: true,
      top_logprobs: 3,
      modalities: ['text', 'image'],
    };
    expect(config(fields)).toEqual(
      withConfig({
        temperature: 0,
        topP: 0.9,
        topK: 40,
        maxOutputTokens: 7,
        stopSequences: ['END'],
        candidateCount: 2,
        seed: 5,
        presencePenalty: 0.5,
        frequencyPenalty: -0.5,
        responseLogprobs: true,
        logprobs: 3,
        responseModalities: ['TEXT', 'IMAGE'],
      }),
    );
  });

  it('leaves out what is null and what Gemini has no word for', () => {
    const fields = {
      temperature: null,
      stop: null,
      response_format: null,
      tools: null,
      logit_bias: { '1': 2 },
      user: 'u',
      parallel_tool_calls: false,
      x_new: 1,
    };
    expect(config(fields)).toEqual({ contents: [USER_TURN] });
  });

  it.each([
    [{ max_tokens: 5, max_completion_tokens: 6 }, {}, 6],
    [{ max_tokens: 5 }, {}, 5],
    [{ max_tokens: 5, max_completion_tokens: 6 }, { maxOutputTokens: 4 }, 4],
  ])('takes the maximum of %j and the gateway %j', (fields, more, maxOutputTokens) => {
    expect(sentBody(fields, GEMINI_3, more)).toEqual(withConfig({ maxOutputTokens }));
  });

  it.each([
    [{ type: 'text' }, undefined],
    [{ type: 'json_object' }, { responseMimeType: 'application/json' }],
    [
      { type: 'json_schema', json_schema: { name: 'a', strict: true, schema: { $schema: 'x', type: 'object' } } },
      { responseMimeType: 'application/json', responseJsonSchema: { type: 'object' } },
    ],
    [{ type: 'json_schema', json_schema: { name: 'a' } }, { responseMimeType: 'application/json' }],
  ])('writes the response format %j', (format, wanted) => {
    const body = config({ response_format: format });
    expect(body).toEqual(wanted === undefined ? { contents: [USER_TURN] } : withConfig(wanted));
  });

  it.each([
    ['none', 'gemini-3-flash-preview', { thinkingLevel: 'minimal', includeThoughts: false }],
    ['minimal', 'gemini-3-flash-preview', { thinkingLevel: 'minimal', includeThoughts: true }],
    ['minimal', 'gemini-3.1-pro-preview', { thinkingLevel: 'low', includeThoughts: true }],
    ['none', 'gemini-3.1-pro-preview', { thinkingLevel: 'low', includeThoughts: false }],
    ['low', 'gemini-flash-latest', { thinkingLevel: 'low', includeThoughts: true }],
    ['medium', 'gemini-4-argon', { thinkingLevel: 'medium', includeThoughts: true }],
    ['xhigh', 'gemini-3.1-pro-preview', { thinkingLevel: 'high', includeThoughts: true }],
    ['none', 'gemini-2.5-flash', { thinkingBudget: 0, includeThoughts: false }],
    ['none', 'gemini-2.5-pro', { thinkingBudget: 128, includeThoughts: false }],
    ['minimal', 'gemini-2.5-flash', { thinkingBudget: 1024, includeThoughts: true }],
    ['low', 'gemini-2.5-pro', { thinkingBudget: 1024, includeThoughts: true }],
    ['medium', 'gemini-2.5-flash', { thinkingBudget: 8192, includeThoughts: true }],
    ['high', 'models/gemini-2.5-pro', { thinkingBudget: 24576, includeThoughts: true }],
    ['max', 'gemini-2.5-flash-lite', { thinkingBudget: 24576, includeThoughts: true }],
  ])('writes the effort %s for %s', (effort, externalId, thinkingConfig) => {
    expect(config({ reasoning_effort: effort }, externalId)).toEqual(withConfig({ thinkingConfig }));
  });

  it.each([
    ['high', 'gemini-2.0-flash'],
    ['an unknown word', 'gemini-3-flash-preview'],
  ])('sets no thinking for %s on %s', (effort, externalId) => {
    expect(config({ reasoning_effort: effort }, externalId)).toEqual({ contents: [USER_TURN] });
  });

  it('passes on the fields of its own that Google documents, in either spelling, and no others', () => {
    const safety = [{ category: 'HARM_CATEGORY_HARASSMENT', threshold: 'BLOCK_NONE' }];
    const fields = {
      reasoning_effort: 'high',
      safety_settings: safety,
      google: { cached_content: 'cachedContents/1', thinking_config: { thinking_budget: 9 }, tools: [{}] },
      extra_body: { google: { imageConfig: { aspectRatio: '1:1' }, mediaResolution: null } },
    };
    expect(config(fields)).toEqual({
      contents: [USER_TURN],
      generationConfig: { thinkingConfig: { thinking_budget: 9 }, imageConfig: { aspectRatio: '1:1' } },
      safetySettings: safety,
      cachedContent: 'cachedContents/1',
    });
  });

  it.each([
    ['six stop texts', { stop: ['1', '2', '3', '4', '5', '6'] }],
    ['spoken answers', { modalities: ['text', 'audio'] }],
    ['an unknown response format', { response_format: { type: 'grammar' } }],
    ['functions of the old form', { functions: [{ name: 'f' }] }],
    ['a tool that is no function', { tools: [{ type: 'custom', custom: { name: 'c' } }] }],
    [
      'a tool choice that is no function',
      {
        tools: [{ type: 'function', function: { name: 'f' } }],
        tool_choice: { type: 'custom', custom: { name: 'c' } },
      },
    ],
  ])('leaves %s to another provider', (_name, fields) => {
    const [field] = Object.keys(fields).slice(-1);
    expect(googleAdapter.unsupported(chatCall(fields, GEMINI_2_5))?.param).toContain(`/${field}`);
  });
});
