import { describe, expect, it } from 'vitest';
import { BARE, HI, refusal, sent, text } from '../anthropic-calls.ts';

const user = (content: unknown) => ({ role: 'user', content });
const assistant = (content: unknown, more: object = {}) => ({ role: 'assistant', content, ...more });
const call = (id: string, args: string, name = 'look') => ({
  id,
  type: 'function',
  function: { name, arguments: args },
});
const result = (id: string, content: unknown) => ({ role: 'tool', tool_call_id: id, content });
const toolUse = (id: string, input: object, name = 'look') => ({ type: 'tool_use', id, name, input });
const toolResult = (id: string, ...content: object[]) => ({ type: 'tool_result', tool_use_id: id, content });

/** What is sent for these messages, besides the bare fields. */
const saying = (...messages: object[]) => sent({ messages }, {});

describe('system messages', () => {
  it('are joined at the top, wherever they stood, with their cache marks', () => {
    const cache = { type: 'ephemeral', ttl: '1h' };
    expect(
      saying({ role: 'system', content: 'One.' }, user('Hi'), {
        role: 'developer',
        content: [{ type: 'text', text: 'Two.', cache_control: cache }, text('')],
      }),
    ).toEqual({ ...BARE, system: [text('One.'), text('Two.', { cache_control: cache })] });
  });

  it('alone are what the user says, for someone must say something', () => {
    expect(saying({ role: 'system', content: 'Sing.' })).toEqual({ ...BARE, messages: [user([text('Sing.')])] });
  });

  it('that hold an image are refused', () => {
    const content = [{ type: 'image_url', image_url: { url: 'https://img.example/a.png' } }];
    expect(() => saying({ role: 'system', content }, user('Hi'))).toThrow(expect.objectContaining(refusal));
  });
});

describe('turns', () => {
  it('alternate: messages of one side in a row are one', () => {
    expect(saying(user('a'), user([text('b')]), assistant('c'), assistant('d'), user('e'))).toEqual({
      ...BARE,
      messages: [user([text('a'), text('b')]), assistant([text('c'), text('d')]), user([text('e')])],
    });
  });

  it('begin with the user', () => {
    expect(saying(assistant('Welcome.'), user('Hi'))).toEqual({
      ...BARE,
      messages: [user([text('(The assistant begins.)')]), assistant([text('Welcome.')]), HI],
    });
  });

  it('leave out empty texts and what is nothing but them', () => {
    expect(saying(user('Hi'), assistant(''), assistant(null), user([text(' \n'), text('there')]), user(''))).toEqual({
      ...BARE,
      messages: [user([text('Hi'), text('there')])],
    });
  });

  it('keep an earlier refusal as what was said', () => {
    const parts = [{ type: 'refusal', refusal: 'No.' }];
    expect(saying(user('Hi'), assistant(null, { refusal: 'Never.' }), assistant(parts), user('Hi'))).toEqual({
      ...BARE,
      messages: [HI, assistant([text('Never.'), text('No.')]), HI],
    });
  });
});

describe('tool calls', () => {
  it('become blocks with their input as an object, and parallel results one turn before all else', () => {
    expect(
      saying(
        user('Hi'),
        assistant('Looking.', {
          tool_calls: [call('toolu_1', '{"a":[1]}'), call('toolu_2', ''), call('toolu_3', '{}')],
        }),
        result('toolu_1', 'one'),
        user('and?'),
        result('toolu_2', [text('two'), text('', {}), text('zwei')]),
        result('toolu_3', ''),
      ),
    ).toEqual({
      ...BARE,
      messages: [
        HI,
        assistant([text('Looking.'), toolUse('toolu_1', { a: [1] }), toolUse('toolu_2', {}), toolUse('toolu_3', {})]),
        user([
          toolResult('toolu_1', text('one')),
          toolResult('toolu_2', text('two'), text('zwei')),
          { type: 'tool_result', tool_use_id: 'toolu_3' },
          text('and?'),
        ]),
      ],
    });
  });

  it.each(['{"a":', '[]', 'null', '"x"', '7'])('with the arguments %s are refused, named by their place', (args) => {
    expect(() => saying(user('Hi'), assistant(null, { tool_calls: [call('a', '{}'), call('b', args)] }))).toThrow(
      expect.objectContaining({ ...refusal, message: expect.stringContaining('/messages/1/tool_calls/1') }),
    );
  });

  it('keep arguments as own properties, whatever they are named', () => {
    const calling = assistant(null, { tool_calls: [call('a', '{"__proto__":{"b":1}}')] });
    expect(JSON.stringify(saying(user('Hi'), calling, result('a', 'x')))).toContain('"input":{"__proto__":{"b":1}}');
  });

  it('with ids that the API refuses get others, the same for call and result', () => {
    const id = 'functions.look:0';
    const body = saying(user('Hi'), assistant(null, { tool_calls: [call(id, '{}')] }), result(id, 'x'));
    const taken = expect.stringMatching(/^call_[0-9a-f]{32}$/);
    expect(body).toEqual({
      ...BARE,
      messages: [HI, assistant([toolUse(taken, {})]), user([toolResult(taken, text('x'))])],
    });
    const [sentId] = JSON.stringify(body).match(/call_[0-9a-f]{32}/) ?? [];
    expect(JSON.stringify(body).split(sentId ?? '-')).toHaveLength(3);
  });

  it('of the old form are answered by the next function message', () => {
    const calling = (args: string) => assistant(null, { function_call: { name: 'look', arguments: args } });
    const answer = (content: string) => ({ role: 'function', name: 'look', content });
    expect(saying(user('Hi'), calling('{"n":1}'), answer('one'), calling(''), answer('two'))).toEqual({
      ...BARE,
      messages: [
        HI,
        assistant([toolUse('function_1', { n: 1 })]),
        user([toolResult('function_1', text('one'))]),
        assistant([toolUse('function_3', {})]),
        user([toolResult('function_3', text('two'))]),
      ],
    });
  });

  it('of custom tools are refused', () => {
    const custom = { id: 'a', type: 'custom', custom: { name: 'x', input: 'y' } };
    expect(() => saying(user('Hi'), assistant(null, { tool_calls: [custom] }))).toThrow(
      expect.objectContaining(refusal),
    );
  });

  it('have results with images, and a cache mark on the result itself', () => {
    const image = { type: 'image_url', image_url: { url: 'https://img.example/a.png' } };
    const marked = { ...image, cache_control: { type: 'ephemeral' } };
    expect(
      saying(user('Hi'), assistant(null, { tool_calls: [call('a', '{}')] }), result('a', [text('see'), marked])),
    ).toEqual({
      ...BARE,
      messages: [
        HI,
        assistant([toolUse('a', {})]),
        user([
          {
            ...toolResult('a', text('see'), {
              type: 'image',
              source: { type: 'url', url: 'https://img.example/a.png' },
            }),
            cache_control: { type: 'ephemeral' },
          },
        ]),
      ],
    });
  });
});

describe('content parts', () => {
  const image = (url: string, more: object = {}) => ({
    type: 'image_url',
    image_url: { url, detail: 'high' },
    ...more,
  });
  const file = (more: object) => ({ type: 'file', file: more });
  const source = (mediaType: string, data: string) => ({ type: 'base64', media_type: mediaType, data });

  it('are sent in order and never dropped: texts, images and files', () => {
    const cache = { type: 'ephemeral', ttl: '1h' };
    expect(
      saying(
        user([
          text('a', { cache_control: { type: 'ephemeral' } }),
          image('data:image/PNG;base64,iVBORw0KGgo=', { cache_control: cache }),
          image('https://img.example/a.png'),
          image('data:application/pdf;base64,JVBERi0='),
          file({ file_data: 'data:application/pdf;base64,JVBERi0=', filename: 'a.pdf' }),
          file({ file_data: 'JVBERi0=' }),
          text('b'),
        ]),
      ),
    ).toEqual({
      ...BARE,
      messages: [
        user([
          text('a', { cache_control: { type: 'ephemeral' } }),
          { type: 'image', source: source('image/png', 'iVBORw0KGgo='), cache_control: cache },
          { type: 'image', source: { type: 'url', url: 'https://img.example/a.png' } },
          { type: 'document', source: source('application/pdf', 'JVBERi0=') },
          { type: 'document', source: source('application/pdf', 'JVBERi0='), title: 'a.pdf' },
          { type: 'document', source: source('application/pdf', 'JVBERi0=') },
          text('b'),
        ]),
      ],
    });
  });

  it.each([
    ['an image by http', image('http://img.example/a.png')],
    ['an image of another type', image('data:image/tiff;base64,AA==')],
    ['an image that is not base64', image('data:image/png,abc')],
    ['a data URL that ends early', image('data:image/png;base64')],
    ['a file by id', file({ file_id: 'file-1' })],
    ['a file that is no PDF', file({ file_data: 'data:text/plain;base64,YQ==' })],
    ['audio', { type: 'input_audio', input_audio: { data: 'AA==', format: 'wav' } }],
    ['video', { type: 'video_url', video_url: { url: 'https://img.example/a.mp4' } }],
  ])('refuse %s, which another provider may take', (_name, part) => {
    expect(() => saying(user([text('see'), part]))).toThrow(expect.objectContaining(refusal));
  });

  it('refuse an answer that was spoken', () => {
    expect(() => saying(user('Hi'), assistant(null, { audio: { id: 'a' } }))).toThrow(expect.objectContaining(refusal));
  });
});

describe('thoughts of an earlier answer', () => {
  const thought = (index: number, more: object) => ({ type: 'reasoning.text', format: 'anthropic', index, ...more });
  const secret = { type: 'reasoning.encrypted', data: 'EvAB+/=', format: 'anthropic', index: 1 };
  const details = [
    thought(0, { text: ' First.\n', signature: 'c2ln' }),
    secret,
    thought(2, { text: '', signature: 'b3I=' }),
  ];
  const calls = { tool_calls: [call('a', '{}')] };
  const replayed = [
    { type: 'thinking', thinking: ' First.\n', signature: 'c2ln' },
    { type: 'redacted_thinking', data: 'EvAB+/=' },
    { type: 'thinking', thinking: '', signature: 'b3I=' },
  ];

  it('are sent back untouched, in order, before all that was said', () => {
    const message = assistant('So.', { ...calls, reasoning: 'First.', reasoning_details: details });
    expect(saying(user('Hi'), message, result('a', 'x'))).toEqual({
      ...BARE,
      messages: [HI, assistant([...replayed, text('So.'), toolUse('a', {})]), user([toolResult('a', text('x'))])],
    });
  });

  it('are put together when a client returns the pieces of a stream', () => {
    const pieces = [
      thought(0, { text: ' Fi' }),
      thought(0, { text: 'rst.\n' }),
      thought(0, { signature: 'c2ln' }),
      secret,
      thought(2, { text: '' }),
      thought(2, { signature: 'b3I=' }),
    ];
    expect(saying(user('Hi'), assistant('So.', { reasoning_details: pieces }), user('Hi'))).toEqual({
      ...BARE,
      messages: [HI, assistant([...replayed, text('So.')]), HI],
    });
  });

  it('without a signature, or of another provider, are left out', () => {
    const foreign = [
      thought(0, { text: 'Unsigned.' }),
      { type: 'reasoning.text', text: 'Other.', signature: 'x', format: 'google', index: 1 },
      { type: 'reasoning.text', text: 'Nobody.', signature: 'x', index: 2 },
      { type: 'reasoning.summary', text: 'Sum.', format: 'anthropic', index: 3 },
    ];
    expect(saying(user('Hi'), assistant('So.', { reasoning_details: foreign }), user('Hi'))).toEqual({
      ...BARE,
      messages: [HI, assistant([text('So.')]), HI],
    });
  });
});
