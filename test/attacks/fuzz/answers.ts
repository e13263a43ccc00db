// Good answers of the fake upstreams, for each wire format: they charge within what was asked for.
import { isRecord, record } from '../../../src/providers/wire/fields.ts';
import type { Random } from '../../crash/random.ts';
import { maximumOf, modelOf, type UpstreamRequest } from './oracle.ts';

/** Named events of a stream, or one whole answer. */
export type Answer =
  | { readonly type: 'whole'; readonly body: object }
  | { readonly type: 'events'; readonly events: readonly StreamEvent[] };

export interface StreamEvent {
  readonly event?: string;
  /** Text is sent as it is. */
  readonly data: object | string;
}

/** What is said and charged. */
interface Told {
  readonly model: unknown;
  readonly text: string;
  readonly prompt: number;
  readonly completion: number;
  readonly choices: number;
  readonly tool: string | undefined;
}

/** Bytes of all texts in a request but for media: no honest tokenizer counts more tokens. */
function textBytes(value: unknown): number {
  if (typeof value === 'string') return value.startsWith('data:') ? 0 : Buffer.byteLength(value);
  if (typeof value !== 'object' || value === null) return 0;
  return Object.values(value).reduce<number>((bytes, inner) => bytes + textBytes(inner), 0);
}

function firstTool({ body, wire }: UpstreamRequest): string | undefined {
  const { tools } = record(body);
  const [tool] = Array.isArray(tools) ? tools : [];
  const [declaration] =
    wire === 'google' && Array.isArray(record(tool).functionDeclarations)
      ? (record(tool).functionDeclarations as unknown[])
      : [];
  const { name } =
    wire === 'openai' ? record(record(tool).function) : wire === 'google' ? record(declaration) : record(tool);
  return typeof name === 'string' && record(tool).type !== 'web_search_20250305' ? name : undefined;
}

function toldBy(request: UpstreamRequest, random: Random): Told {
  const body = record(request.body);
  const most = Math.min(maximumOf(request) ?? 300, 2000);
  const bytes = textBytes(body.messages ?? body.contents ?? body.prompt);
  const choices = typeof body.n === 'number' ? body.n : 1;
  // Often as much as is allowed.
  const completion = random.chance(0.3) ? most : random.between(0, most);
  return {
    model: modelOf(request),
    text: 'abcdefghij'.repeat(30).slice(0, Math.min(completion, 60)),
    prompt: random.chance(0.3) ? Math.max(1, bytes) : random.between(1, Math.max(1, bytes)),
    completion: completion * choices,
    choices,
    tool: random.chance(0.5) ? firstTool(request) : undefined,
  };
}

const openAiUsage = ({ prompt, completion }: Told): object => ({
  prompt_tokens: prompt,
  completion_tokens: completion,
  total_tokens: prompt + completion,
  prompt_tokens_details: { cached_tokens: prompt >> 1 },
  completion_tokens_details: { reasoning_tokens: completion >> 2 },
});

const openAiCall = (name: string, id: string) => ({
  id,
  type: 'function',
  function: { name, arguments: '{"city":"Oslo"}' },
});

function openAiWhole(told: Told): Answer {
  const message = (index: number): object =>
    told.tool === undefined
      ? { role: 'assistant', content: told.text, reasoning: 'Well.' }
      : { role: 'assistant', content: null, tool_calls: [openAiCall(told.tool, `call_${index}`)] };
  const choices = Array.from({ length: told.choices }, (_, index) => ({
    index,
    message: message(index),
    finish_reason: told.tool === undefined ? 'stop' : 'tool_calls',
  }));
  const body = {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1,
    model: told.model,
    choices,
    usage: openAiUsage(told),
  };
  return { type: 'whole', body };
}

function openAiStream(told: Told): Answer {
  const chunk = (choices: readonly object[], more: object = {}): StreamEvent => ({
    data: { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: told.model, choices, ...more },
  });
  const delta = (index: number, fields: object, finish: string | null = null): StreamEvent =>
    chunk([{ index, delta: fields, finish_reason: finish }]);
  const choices = Array.from({ length: told.choices }, (_, index) =>
    told.tool === undefined
      ? [
          delta(index, { role: 'assistant', content: told.text.slice(0, 20) }),
          delta(index, { content: told.text.slice(20) }),
          delta(index, {}, 'stop'),
        ]
      : [
          delta(index, { role: 'assistant', tool_calls: [{ index: 0, ...openAiCall(told.tool, `call_${index}`) }] }),
          delta(index, {}, 'tool_calls'),
        ],
  );
  return { type: 'events', events: [...choices.flat(), chunk([], { usage: openAiUsage(told) }), { data: '[DONE]' }] };
}

const anthropicUsage = ({ prompt, completion }: Told): object => ({ input_tokens: prompt, output_tokens: completion });

function anthropicWhole(told: Told): Answer {
  const { model, text, tool } = told;
  const content =
    tool === undefined
      ? [{ type: 'text', text }]
      : [{ type: 'tool_use', id: 'toolu_1', name: tool, input: { city: 'Oslo' } }];
  const stop_reason = tool === undefined ? 'end_turn' : 'tool_use';
  return {
    type: 'whole',
    body: { id: 'msg_1', type: 'message', role: 'assistant', model, content, stop_reason, usage: anthropicUsage(told) },
  };
}

function anthropicStream(told: Told): Answer {
  const { model, text, tool } = told;
  const block =
    tool === undefined ? { type: 'text', text: '' } : { type: 'tool_use', id: 'toolu_1', name: tool, input: {} };
  const piece =
    tool === undefined ? { type: 'text_delta', text } : { type: 'input_json_delta', partial_json: '{"city":"Oslo"}' };
  const stop_reason = tool === undefined ? 'end_turn' : 'tool_use';
  const events: { readonly type: string }[] = [
    {
      type: 'message_start',
      ...{
        message: {
          id: 'msg_1',
          type: 'message',
          role: 'assistant',
          model,
          content: [],
          usage: { ...anthropicUsage(told), output_tokens: 0 },
        },
      },
    },
    { type: 'content_block_start', ...{ index: 0, content_block: block } },
    { type: 'ping' },
    { type: 'content_block_delta', ...{ index: 0, delta: piece } },
    { type: 'content_block_stop', ...{ index: 0 } },
    { type: 'message_delta', ...{ delta: { stop_reason }, usage: anthropicUsage(told) } },
    { type: 'message_stop' },
  ];
  return { type: 'events', events: events.map((data) => ({ event: data.type, data })) };
}

function googleBody(told: Told, parts: readonly object[], finishReason?: string): object {
  const thoughts = told.completion >> 2;
  return {
    candidates: [
      { index: 0, content: { role: 'model', parts }, ...(finishReason === undefined ? {} : { finishReason }) },
    ],
    usageMetadata: {
      promptTokenCount: told.prompt,
      candidatesTokenCount: told.completion - thoughts,
      thoughtsTokenCount: thoughts,
    },
    modelVersion: told.model,
  };
}

function googleAnswer(told: Told, stream: boolean): Answer {
  const part =
    told.tool === undefined ? { text: told.text } : { functionCall: { name: told.tool, args: { city: 'Oslo' } } };
  if (!stream) return { type: 'whole', body: googleBody(told, [part], 'STOP') };
  return {
    type: 'events',
    events: [{ data: googleBody(told, [part]) }, { data: googleBody(told, [{ text: '' }], 'STOP') }],
  };
}

const PICTURE = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

function openAiImages(told: Told, { stream, partial_images: drafts }: Readonly<Record<string, unknown>>): Answer {
  const usage = {
    input_tokens: told.prompt,
    output_tokens: told.choices * 100,
    total_tokens: told.prompt + told.choices * 100,
  };
  if (stream === true) {
    const draft = (place: number): object => ({
      type: 'image_generation.partial_image',
      b64_json: PICTURE,
      partial_image_index: place,
      created_at: 1,
    });
    const events = Array.from({ length: typeof drafts === 'number' ? drafts : 0 }, (_, place) => draft(place));
    events.push({ type: 'image_generation.completed', b64_json: PICTURE, created_at: 1, usage });
    return { type: 'events', events: events.map((data) => ({ data })) };
  }
  return {
    type: 'whole',
    body: { created: 1, data: Array.from({ length: told.choices }, () => ({ b64_json: PICTURE })), usage },
  };
}

function verdicts(body: unknown): Answer {
  const { input } = record(body);
  const inputs = Array.isArray(input) && input.every((item) => typeof item === 'string') ? input.length : 1;
  const verdict = { flagged: false, categories: { violence: false }, category_scores: { violence: 0.01 } };
  return {
    type: 'whole',
    body: { id: 'modr-1', model: 'omni-moderation-latest', results: Array.from({ length: inputs }, () => verdict) },
  };
}

/** What an honest upstream answers, in the form that is asked for. */
export function goodAnswer(request: UpstreamRequest, random: Random): Answer {
  const { wire, path, body } = request;
  const told = toldBy(request, random);
  if (path.endsWith('/moderations')) return verdicts(body);
  if (path.endsWith('/images/generations')) return openAiImages(told, record(body));
  const stream = wire === 'google' ? path.includes(':stream') : isRecord(body) && body.stream === true;
  if (wire === 'google') return wantsPicture(body) ? googlePicture(told, stream) : googleAnswer(told, stream);
  if (wire === 'anthropic') return stream ? anthropicStream(told) : anthropicWhole(told);
  return stream ? openAiStream(told) : openAiWhole(told);
}

const wantsPicture = (body: unknown): boolean =>
  JSON.stringify(record(record(body).generationConfig).responseModalities ?? '').includes('IMAGE');

function googlePicture(told: Told, stream: boolean): Answer {
  const body = googleBody(told, [{ inlineData: { mimeType: 'image/png', data: PICTURE } }], 'STOP');
  return stream ? { type: 'events', events: [{ data: body }] } : { type: 'whole', body };
}

/** The text of a stream, or of a whole answer. */
export const textOf = (answer: Answer, serialise: (value: object) => string = JSON.stringify): string =>
  answer.type === 'whole'
    ? serialise(answer.body)
    : answer.events
        .map(
          ({ event, data }) =>
            `${event === undefined ? '' : `event: ${event}\n`}data: ${typeof data === 'string' ? data : serialise(data)}\n\n`,
        )
        .join('');
