// Bodies of requests: valid ones with anything that the API has, and those near them.
import type { Random } from '../../crash/random.ts';
import { mangle, mutate, written } from './json.ts';
import { CHAT_MODELS, IMAGE_MODELS } from './served.ts';

/** Words of every prompt: they may not reach the log. */
export const PROMPT_WORDS = 'confidential fuzzing prompt';

const PIXEL =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

type Fields = Record<string, unknown>;
type Choice<T> = readonly [T, ...T[]];

const promptText = (random: Random, mark: string): string =>
  `This is ${mark}, a ${PROMPT_WORDS}${random.chance(0.1) ? ` ${'words '.repeat(random.between(1, 500))}` : ''}.`;

function content(random: Random, mark: string): unknown {
  const text = promptText(random, mark);
  if (random.chance(0.7)) return text;
  const parts: Choice<Fields> = [
    { type: 'text', text: 'More.' },
    { type: 'image_url', image_url: { url: PIXEL, detail: 'low' } },
    { type: 'image_url', image_url: { url: 'https://example.com/cat.png' } },
    { type: 'input_audio', input_audio: { data: 'UklGRg==', format: 'wav' } },
    { type: 'file', file: { file_data: 'data:application/pdf;base64,JVBERi0=', filename: 'a.pdf' } },
    { type: 'text', text: 'Cached.', cache_control: { type: 'ephemeral' } },
  ];
  return [{ type: 'text', text }, ...Array.from({ length: random.between(0, 3) }, () => random.pick(parts))];
}

const TOOL_TURNS: readonly Fields[] = [
  {
    role: 'assistant',
    content: null,
    tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'weather', arguments: '{"city":"Oslo"}' } }],
  },
  { role: 'tool', tool_call_id: 'call_1', content: 'Rain.' },
];

function messages(random: Random, mark: string): Fields[] {
  return [
    ...(random.chance(0.3) ? [{ role: random.pick(['system', 'developer']), content: 'Be short.' }] : []),
    ...(random.chance(0.2)
      ? [
          { role: 'user', content: 'Hi' },
          { role: 'assistant', content: 'Hello', reasoning: 'Well.' },
        ]
      : []),
    ...(random.chance(0.1) ? [{ role: 'user', content: 'Weather?' }, ...structuredClone(TOOL_TURNS)] : []),
    { role: 'user', content: content(random, mark) },
  ];
}

const SCHEMA = {
  type: 'object',
  properties: { city: { type: 'string' }, model: { type: 'string' } },
  required: ['city'],
};

/** Each makes one optional field of a chat. */
const OPTIONS: Choice<(random: Random) => Fields> = [
  (random) => ({ max_tokens: random.pick([1, 16, 200, 400, 1e6, 1e9]) }),
  (random) => ({ max_completion_tokens: random.pick([1, 16, 300, 1e9]) }),
  (random) => ({ n: random.pick([1, 2, 8]) }),
  (random) => ({ temperature: random.next() * 2, top_p: random.next() }),
  (random) => ({ stop: random.pick<unknown>(['.', ['a', 'b'], new Array(20).fill('x')]) }),
  () => ({ logprobs: true, top_logprobs: 5 }),
  () => ({ logit_bias: { '50256': -100 } }),
  () => ({
    tools: [
      {
        type: 'function',
        function: { name: 'weather', description: 'Weather', parameters: structuredClone(SCHEMA), strict: true },
      },
    ],
  }),
  () => ({
    tools: [{ type: 'function', function: { name: 'weather' } }],
    tool_choice: 'required',
    parallel_tool_calls: false,
  }),
  () => ({ tools: [{ type: 'custom', custom: { name: 'shell' } }] }),
  () => ({ tools: [{ type: 'web_search_20250305', name: 'web_search', max_uses: 2 }] }),
  () => ({ functions: [{ name: 'weather', parameters: structuredClone(SCHEMA) }], function_call: 'auto' }),
  () => ({ response_format: { type: 'json_object' } }),
  () => ({
    response_format: {
      type: 'json_schema',
      json_schema: { name: 'weather', schema: structuredClone(SCHEMA), strict: true },
    },
  }),
  (random) => ({ reasoning_effort: random.pick(['none', 'low', 'high', 'max', 'odd']) }),
  (random) => ({ service_tier: random.pick(['auto', 'default', 'flex', 'priority', 'fast']) }),
  () => ({ metadata: { topic: 'demo', model: 'pricey' } }),
  () => ({ modalities: ['text', 'audio'], audio: { voice: 'alloy', format: 'wav' } }),
  () => ({ prediction: { type: 'content', content: 'Perhaps this.' } }),
  () => ({ web_search_options: { search_context_size: 'low' } }),
  () => ({ top_k: 5, min_p: 0.1 }),
  () => ({ thinking: { type: 'enabled', budget_tokens: 2000 } }),
  () => ({ betas: ['effort-2025-11-24'] }),
  () => ({ extra_body: { google: { thinking_config: { thinking_budget: 5 } } } }),
  () => ({ google: { safety_settings: [{ category: 'x', threshold: 'BLOCK_NONE' }] } }),
  () => ({ x_trace: { model: 'pricey' } }),
  () => ({ user: 'someone@example.com', safety_identifier: 'abc', seed: 7, store: true, verbosity: 'low' }),
  () => ({ stream_options: { include_usage: true } }),
];

/** A chat that the API may take; some of its models may not take some of its fields. */
export function chatBody(random: Random, mark: string, model: string = random.pick(CHAT_MODELS)): Fields {
  const options = random.chance(0.5) ? random.between(0, 3) : 0;
  return {
    model,
    messages: messages(random, mark),
    ...(random.chance(0.5) ? { stream: true } : {}),
    ...(random.chance(0.6) ? { max_tokens: random.between(1, 300) } : {}),
    ...Object.assign({}, ...Array.from({ length: options }, () => random.pick(OPTIONS)(random))),
  };
}

/** A chat that every model takes. */
export const plainChat = (random: Random, mark: string, model: string = random.pick(CHAT_MODELS)): Fields => ({
  model,
  messages: [{ role: 'user', content: promptText(random, mark) }],
  ...(random.chance(0.5) ? { stream: true } : {}),
  ...(random.chance(0.6) ? { max_tokens: random.between(1, 300) } : {}),
});

export const imageBody = (random: Random, mark: string, model: string = random.pick(IMAGE_MODELS)): Fields => ({
  prompt: promptText(random, mark),
  model,
  ...(random.chance(0.5) ? { n: random.pick([1, 2, 10]) } : {}),
  ...(random.chance(0.5)
    ? { size: random.pick(['256x256', '1024x1024', '2048x2048', 'auto', '16x16', '0x0', '99999x99999']) }
    : {}),
  ...(random.chance(0.2) ? { aspect_ratio: random.pick(['16:9', '1:99']) } : {}),
  ...(random.chance(0.2) ? { response_format: random.pick(['b64_json', 'url']) } : {}),
  ...(random.chance(0.3) ? { stream: true, partial_images: random.between(0, 3) } : {}),
});

export const moderationBody = (random: Random, mark: string): Fields => ({
  input: random.pick<unknown>([
    promptText(random, mark),
    [promptText(random, mark), 'Second.'],
    [
      { type: 'text', text: promptText(random, mark) },
      { type: 'image_url', image_url: { url: PIXEL } },
    ],
  ]),
  ...(random.chance(0.3) ? { model: random.pick(['omni-moderation-latest', 'pricey', 'sandbox-moderation']) } : {}),
});

/** The bytes of a body: as often valid as almost so. */
export function bytesOf(random: Random, body: object): Buffer {
  if (random.chance(0.4)) return Buffer.from(JSON.stringify(body));
  const text = written(mutate(random, structuredClone(body)));
  return random.chance(0.15) ? mangle(random, text) : Buffer.from(text);
}

const filled = (bytes: number, unit: string, between = ','): string =>
  Array.from({ length: Math.floor(bytes / (unit.length + between.length)) }, () => unit).join(between);

/** A chat of some megabytes: of many values, many fields, or long text. */
export function largeBody(random: Random, mark: string): Buffer {
  const bytes = random.pick([200_000, 1_000_000, 4_000_000, 9_900_000, 10_485_000, 11_000_000]);
  const values: string = random.pick([
    () => `[${filled(bytes, '{}')}]`,
    () => `[${filled(bytes, '[]')}]`,
    () => `[${filled(bytes, '0')}]`,
    () => `[${filled(bytes, '""')}]`,
    () => `[${filled(bytes, '{"a":1}')}]`,
    () => `{${Array.from({ length: Math.floor(bytes / 14) }, (_, field) => `"f${field}":0`).join()}}`,
    () => `"${'x'.repeat(bytes)}"`,
    () => `"${'\\u0000'.repeat(Math.floor(bytes / 6))}"`,
    () => `"${'\\\\'.repeat(Math.floor(bytes / 2))}"`,
    () => `"${'é'.repeat(Math.floor(bytes / 2))}"`,
  ] as const)();
  const put: (text: string) => string = random.pick([
    (text) => `{"model":"shared","messages":[{"role":"user","content":"${mark}"}],"metadata":${text}}`,
    (text) => `{"model":"shared","messages":[{"role":"user","content":"${mark}"}],"stop":${text}}`,
    (text) => `{"model":"shared","messages":[{"role":"user","content":"${mark}"},{"role":"user","content":${text}}]}`,
    (text) => `{"model":"shared","messages":${text}}`,
    (text) =>
      `{"model":"shared","messages":[{"role":"user","content":"${mark}"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"x":${text}}}}]}`,
    (text) => text,
  ] as const);
  return Buffer.from(put(values));
}
