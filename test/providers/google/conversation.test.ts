import { describe, expect, it } from 'vitest';
import { answeredSample, GEMINI_2_5, GEMINI_3, sentBody } from '../google-samples.ts';

const conversation = (messages: readonly object[], externalId = GEMINI_3) => sentBody({ messages }, externalId);
const refusal = { name: 'UpstreamError', errorType: 'rejected', retryable: true };

const LOST = 'skip_thought_signature_validator';
const user = (...parts: object[]) => ({ role: 'user', parts });
const model = (...parts: object[]) => ({ role: 'model', parts });
const call = (id: string, name: string, args = '{}', more: object = {}) => ({
  id,
  type: 'function',
  function: { name, arguments: args },
  ...more,
});
const signed = (thought_signature: string) => ({ extra_content: { google: { thought_signature } } });

describe('a conversation', () => {
  it('puts what system and developer say into the instruction and joins neighbours of one role', () => {
    const messages = [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Hi' },
      { role: 'user', content: [{ type: 'text', text: 'there' }], name: 'Ann' },
      { role: 'developer', content: [{ type: 'text', text: 'In German.' }] },
      { role: 'assistant', content: 'Hallo' },
      { role: 'assistant', content: null, refusal: 'Nein' },
      { role: 'user', content: 'Ok' },
    ];
    expect(conversation(messages)).toEqual({
      contents: [
        user({ text: 'Hi' }, { text: 'there' }),
        model({ text: 'Hallo' }, { text: 'Nein' }),
        user({ text: 'Ok' }),
      ],
      systemInstruction: { parts: [{ text: 'Be brief.' }, { text: 'In German.' }] },
    });
  });

  it('takes instructions alone for a turn, and leaves out what says nothing', () => {
    expect(conversation([{ role: 'system', content: 'Say hi.' }])).toEqual({ contents: [user({ text: 'Say hi.' })] });
    const messages = [
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: '' },
      { role: 'user', content: 'Ho' },
    ];
    expect(conversation(messages)).toEqual({ contents: [user({ text: 'Hi' }, { text: 'Ho' })] });
  });

  it('sends images, audio and files inline', () => {
    const content = [
      { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
      { type: 'image_url', image_url: { url: 'data:image/svg+xml;charset=utf-8;base64,BBBB' } },
      { type: 'input_audio', input_audio: { data: 'CCCC', format: 'mp3' } },
      { type: 'file', file: { file_data: 'data:application/pdf;base64,DDDD', filename: 'a.pdf' } },
      { type: 'file', file: { file_data: 'EEEE' } },
      { type: 'file', file: { file_data: 'FFFF', filename: 'table.CSV' } },
      { type: 'video_url', video_url: { url: 'data:video/mp4;base64,GGGG' } },
    ];
    const inline = (mimeType: string, data: string) => ({ inlineData: { mimeType, data } });
    expect(conversation([{ role: 'user', content }])).toEqual({
      contents: [
        user(
          inline('image/png', 'AAAA'),
          inline('image/svg+xml', 'BBBB'),
          inline('audio/mp3', 'CCCC'),
          inline('application/pdf', 'DDDD'),
          inline('application/pdf', 'EEEE'),
          inline('text/csv', 'FFFF'),
          inline('video/mp4', 'GGGG'),
        ),
      ],
    });
  });

  it('hands https addresses to the provider, which fetches them, with the type that the name tells', () => {
    const content = [
      { type: 'image_url', image_url: { url: 'https://pics.example/a.JPG?size=2' } },
      { type: 'image_url', image_url: { url: 'https://pics.example/image' } },
      { type: 'file', file: { file_data: 'https://docs.example/a.pdf' } },
      { type: 'file', file: { file_id: 'https://generativelanguage.googleapis.com/v1beta/files/abc' } },
    ];
    expect(conversation([{ role: 'user', content }], GEMINI_2_5)).toEqual({
      contents: [
        user(
          { fileData: { mimeType: 'image/jpeg', fileUri: 'https://pics.example/a.JPG?size=2' } },
          { fileData: { mimeType: 'image/jpeg', fileUri: 'https://pics.example/image' } },
          { fileData: { mimeType: 'application/pdf', fileUri: 'https://docs.example/a.pdf' } },
          { fileData: { fileUri: 'https://generativelanguage.googleapis.com/v1beta/files/abc' } },
        ),
      ],
    });
  });

  it.each([
    ['an http address', { type: 'image_url', image_url: { url: 'http://pics.example/a.png' } }, GEMINI_3],
    ['a bucket', { type: 'image_url', image_url: { url: 'gs://bucket/a.png' } }, GEMINI_3],
    ['text that is no address', { type: 'image_url', image_url: { url: 'a.png' } }, GEMINI_3],
    ['a data URL without base64', { type: 'image_url', image_url: { url: 'data:text/plain,hi' } }, GEMINI_3],
    [
      'an address on Gemini 2.0',
      { type: 'image_url', image_url: { url: 'https://a.example/a.png' } },
      'gemini-2.0-flash',
    ],
    ['a file of another provider', { type: 'file', file: { file_id: 'file-abc' } }, GEMINI_3],
    ['an empty file', { type: 'file', file: {} }, GEMINI_3],
  ])('leaves %s to another provider', (_name, part, externalId) => {
    expect(() => conversation([{ role: 'user', content: [part] }], externalId)).toThrow(
      expect.objectContaining(refusal),
    );
  });
});

describe('tool calls in a conversation', () => {
  it('go back with their ids, signatures and parsed arguments; parallel results form one turn, named by their calls', () => {
    const messages = [
      { role: 'user', content: 'Weather?' },
      {
        role: 'assistant',
        content: 'Looking.',
        reasoning_details: [{ type: 'reasoning.encrypted', format: 'google', data: 's0', index: 0 }],
        tool_calls: [call('a', 'get_weather', '{"city":"Ulm"}', signed('s1')), call('b', 'get_time', '')],
      },
      { role: 'tool', tool_call_id: 'b', content: 'noon' },
      { role: 'tool', tool_call_id: 'a', content: [{ type: 'text', text: '{"sky":"blue"}' }] },
      { role: 'user', content: 'And?' },
      { role: 'assistant', content: null, tool_calls: [call('c', 'get_time', '[1]', signed('s2'))] },
      { role: 'tool', tool_call_id: 'c', content: '[12345678901234567890]' },
    ];
    expect(conversation(messages)).toEqual({
      contents: [
        user({ text: 'Weather?' }),
        model(
          { text: 'Looking.', thoughtSignature: 's0' },
          { functionCall: { id: 'a', name: 'get_weather', args: { city: 'Ulm' } }, thoughtSignature: 's1' },
          { functionCall: { id: 'b', name: 'get_time', args: {} } },
        ),
        user(
          { functionResponse: { id: 'b', name: 'get_time', response: { result: 'noon' } } },
          { functionResponse: { id: 'a', name: 'get_weather', response: { sky: 'blue' } } },
        ),
        user({ text: 'And?' }),
        model({ functionCall: { id: 'c', name: 'get_time', args: { arguments: '[1]' } }, thoughtSignature: 's2' }),
        user({ functionResponse: { id: 'c', name: 'get_time', response: { result: '[12345678901234567890]' } } }),
      ],
    });
  });

  const unsigned = [
    { role: 'user', content: 'Go' },
    { role: 'assistant', tool_calls: [call('a', 'f'), call('b', 'g')] },
  ];
  const turn = (first: object) => ({
    contents: [
      user({ text: 'Go' }),
      model(
        { functionCall: { id: 'a', name: 'f', args: {} }, ...first },
        { functionCall: { id: 'b', name: 'g', args: {} } },
      ),
    ],
  });

  it.each([
    [GEMINI_3, { thoughtSignature: LOST }],
    ['gemini-4-argon', { thoughtSignature: LOST }],
    ['gemini-flash-latest', { thoughtSignature: LOST }],
    [GEMINI_2_5, {}],
    ['gemma-3-27b-it', {}],
  ])('that lost their signature go to %s with %j on the first of them', (externalId, first) => {
    expect(conversation(unsigned, externalId)).toEqual(turn(first));
  });

  it('of the old form have no id', () => {
    const messages = [
      { role: 'user', content: 'Go' },
      { role: 'assistant', function_call: { name: 'f', arguments: '{"a":1}' } },
      { role: 'function', name: 'f', content: 'done' },
    ];
    expect(conversation(messages)).toEqual({
      contents: [
        user({ text: 'Go' }),
        model({ functionCall: { name: 'f', args: { a: 1 } }, thoughtSignature: LOST }),
        user({ functionResponse: { name: 'f', response: { result: 'done' } } }),
      ],
    });
  });

  it('may be of a custom tool, called under another provider', () => {
    const custom = { id: 'x', type: 'custom', custom: { name: 'shell', input: 'ls' } };
    const messages = [{ role: 'assistant', tool_calls: [custom] }];
    expect(conversation(messages, GEMINI_2_5)).toEqual({
      contents: [model({ functionCall: { id: 'x', name: 'shell', args: { input: 'ls' } } })],
    });
  });

  const withImage = [
    { role: 'assistant', tool_calls: [call('a', 'draw', '{}', signed('s'))] },
    {
      role: 'tool',
      tool_call_id: 'a',
      content: [
        { type: 'text', text: 'drawn' },
        { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
      ],
    },
  ];

  it('may result in images since Gemini 3, and before only in text', () => {
    expect(conversation(withImage)).toEqual({
      contents: [
        model({ functionCall: { id: 'a', name: 'draw', args: {} }, thoughtSignature: 's' }),
        user({
          functionResponse: {
            id: 'a',
            name: 'draw',
            response: { result: 'drawn' },
            parts: [{ inlineData: { mimeType: 'image/png', data: 'AAAA' } }],
          },
        }),
      ],
    });
    expect(() => conversation(withImage, GEMINI_2_5)).toThrow(expect.objectContaining(refusal));
  });

  it('must be there for a result to be sent', () => {
    expect(() => conversation([{ role: 'tool', tool_call_id: 'z', content: 'x' }])).toThrow(
      expect.objectContaining(refusal),
    );
  });

  it('of two rounds with the same ids have each its own name', () => {
    const messages = [
      { role: 'assistant', tool_calls: [call('call_0', 'f', '{}', signed('s'))] },
      { role: 'tool', tool_call_id: 'call_0', content: '1' },
      { role: 'assistant', tool_calls: [call('call_0', 'g', '{}', signed('t'))] },
      { role: 'tool', tool_call_id: 'call_0', content: '2' },
    ];
    expect(conversation(messages)).toEqual({
      contents: [
        model({ functionCall: { id: 'call_0', name: 'f', args: {} }, thoughtSignature: 's' }),
        user({ functionResponse: { id: 'call_0', name: 'f', response: { result: '1' } } }),
        model({ functionCall: { id: 'call_0', name: 'g', args: {} }, thoughtSignature: 't' }),
        user({ functionResponse: { id: 'call_0', name: 'g', response: { result: '2' } } }),
      ],
    });
  });
});

describe('thought signatures', () => {
  const back = (name: string) => conversation([{ ...answeredSample(name).choices[0]?.message }]);

  it('of text survive the round trip', () => {
    expect(back('answer.json')).toEqual({
      contents: [model({ text: '9.9 is larger.', thoughtSignature: 'c2lnLXRleHQ=' })],
    });
  });

  it('of tool calls survive the round trip, with the ids that were made up', () => {
    expect(back('parallel-calls.json')).toEqual({
      contents: [
        model(
          {
            functionCall: { id: 'fc_a1', name: 'get_weather', args: { city: 'Ulm' } },
            thoughtSignature: 'c2lnLWNhbGw=',
          },
          { functionCall: { id: 'call_1', name: 'get_weather', args: { city: 'Graz' } } },
          { functionCall: { id: 'call_2', name: 'get_time', args: {} } },
        ),
      ],
    });
  });

  it('of images survive the round trip', () => {
    expect(back('image.json')).toEqual({
      contents: [
        model(
          { text: 'Here is the lighthouse.' },
          { inlineData: { mimeType: 'image/png', data: 'aVZCT1J3MEs=' }, thoughtSignature: 'c2lnLWltYWdl' },
        ),
      ],
    });
  });

  it('that came on several parts go back on parts of their own; those of other providers are left out', () => {
    const detail = (data: string, more: object = {}) => ({
      type: 'reasoning.encrypted',
      format: 'google',
      data,
      ...more,
    });
    const details = [
      detail('a'),
      detail('b'),
      detail('c', { format: 'openai' }),
      detail('', {}),
      { type: 'reasoning.text', format: 'google', text: 'thought', signature: 'd' },
    ];
    expect(conversation([{ role: 'assistant', content: 'Hi', reasoning_details: details }])).toEqual({
      contents: [model({ text: 'Hi', thoughtSignature: 'a' }, { text: '', thoughtSignature: 'b' })],
    });
    expect(conversation([{ role: 'assistant', content: null, reasoning_details: [detail('a')] }])).toEqual({
      contents: [model({ text: '', thoughtSignature: 'a' })],
    });
  });
});
