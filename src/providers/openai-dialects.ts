/** How a provider wants the messages of a conversation. */
export interface MessageDialect {
  /** It knows no role `developer`; `system` means the same. */
  readonly systemForDeveloper: boolean;
  /** Fields that it refuses, or that other providers' answers have left there: they are not sent. */
  readonly leftOut: readonly string[];
  /** The field in which a model that reasons gets earlier thoughts back. */
  readonly thoughts?: 'reasoning' | 'reasoning_content';
  /** Thoughts are required wherever tools were called: where we have none, it gets a blank. */
  readonly thoughtsRequired?: boolean;
}

/** In what a provider's chat endpoint differs from what OpenAI's clients send. Fields that nothing here names are forwarded. */
export interface OpenAiDialect {
  /** The one field for the most tokens to generate. Absent: it knows both. */
  readonly maxTokens?: 'max_tokens' | 'max_completion_tokens';
  /** It refuses `stream_options` and reports the usage of a stream unasked. */
  readonly noStreamOptions?: boolean;
  /** Its names of request fields. */
  readonly renamed?: Readonly<Record<string, string>>;
  /** Fields that it refuses and that the answer can do without. */
  readonly leftOut?: readonly string[];
  /** Fields that it refuses and that the answer depends on: such a request goes to another provider. */
  readonly refused?: readonly string[];
  /** Absent: messages are sent as they came. */
  readonly messages?: MessageDialect;
}

/** Marks that answers of this gateway carry and that only the provider they came from understands. */
const MARKS = ['reasoning', 'reasoning_content', 'reasoning_details', 'images', 'extra_content'];

/** Fields of OpenAI's own answers which strict validators refuse in a message that comes back. */
const ECHOES = ['refusal', 'annotations'];

const DEFAULT: OpenAiDialect = {};

/** From the providers' documentation, as of late 2026; where that is silent, from the text of their 400s. */
const DIALECTS: ReadonlyMap<string, OpenAiDialect> = new Map<string, OpenAiDialect>([
  [
    'openai',
    // Reasoning models refuse `max_tokens`; every other model takes the newer field too.
    { maxTokens: 'max_completion_tokens', messages: { systemForDeveloper: false, leftOut: MARKS } },
  ],
  [
    'mistral',
    // 422 `extra_forbidden` for anything outside its schema, in messages too.
    {
      maxTokens: 'max_tokens',
      noStreamOptions: true,
      renamed: { seed: 'random_seed' },
      leftOut: ['user', 'safety_identifier', 'store', 'service_tier', 'verbosity'],
      refused: ['logit_bias', 'logprobs', 'top_logprobs'],
      messages: { systemForDeveloper: true, leftOut: [...MARKS, ...ECHOES, 'name'] },
    },
  ],
  [
    'groq',
    // "OpenAI compatibility": these are a 400, and `n` must be 1.
    {
      maxTokens: 'max_completion_tokens',
      refused: ['logit_bias', 'logprobs', 'top_logprobs', 'n'],
      messages: { systemForDeveloper: false, leftOut: [...MARKS, ...ECHOES, 'name'] },
    },
  ],
  [
    'deepseek',
    // "Thinking mode": a turn that called tools without `reasoning_content` is a 400; elsewhere it is ignored.
    {
      maxTokens: 'max_tokens',
      messages: {
        systemForDeveloper: true,
        leftOut: MARKS,
        thoughts: 'reasoning_content',
        thoughtsRequired: true,
      },
    },
  ],
  [
    'xai',
    // Reasoning models, and the newer others, refuse both penalties.
    {
      maxTokens: 'max_completion_tokens',
      leftOut: ['presence_penalty', 'frequency_penalty'],
      messages: { systemForDeveloper: true, leftOut: MARKS },
    },
  ],
  ['together', { maxTokens: 'max_tokens' }],
  [
    'fireworks',
    {
      maxTokens: 'max_tokens',
      messages: { systemForDeveloper: true, leftOut: MARKS, thoughts: 'reasoning_content' },
    },
  ],
  [
    'cerebras',
    // 400 `wrong_api_format` for unknown properties; it wants thoughts back under the name that it gave them.
    {
      maxTokens: 'max_completion_tokens',
      leftOut: ['presence_penalty', 'frequency_penalty'],
      refused: ['logit_bias'],
      messages: { systemForDeveloper: true, leftOut: [...MARKS, ...ECHOES], thoughts: 'reasoning' },
    },
  ],
  [
    'moonshotai',
    // With thinking on, a turn that called tools without `reasoning_content` is a 400; sampling is fixed.
    {
      maxTokens: 'max_completion_tokens',
      leftOut: ['temperature', 'top_p', 'presence_penalty', 'frequency_penalty'],
      refused: ['n'],
      messages: {
        systemForDeveloper: true,
        leftOut: MARKS,
        thoughts: 'reasoning_content',
        thoughtsRequired: true,
      },
    },
  ],
  ['openrouter', { maxTokens: 'max_tokens' }],
]);

/** The dialect of a provider of the catalogue; for any other, of a server that takes what OpenAI's takes. */
export const openAiDialect = (providerId: string): OpenAiDialect => DIALECTS.get(providerId) ?? DEFAULT;
