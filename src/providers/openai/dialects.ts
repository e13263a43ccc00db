import { anything, type Extensions, listOf, objectOf, type RequestTable, single } from '../wire/request-fields.ts';

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

/** In what a provider's chat endpoint differs from OpenAI's. */
export interface OpenAiDialect extends Pick<RequestTable, 'extensions'> {
  /** OpenAI's fields that it refuses. */
  readonly cannot: readonly string[];
  /** The one field for the most tokens to generate. Absent: it knows both. */
  readonly maxTokens?: 'max_tokens' | 'max_completion_tokens';
  /** It refuses `stream_options` and reports the usage of a stream unasked. */
  readonly noStreamOptions?: boolean;
  /** Its names of request fields. */
  readonly renamed?: Readonly<Record<string, string>>;
  /** It bills each answer to a request with `web_search_options` for one search at least, and reports none. */
  readonly searchesUnreported?: boolean;
  /** Absent: messages are sent as they came, but for what no provider knows. */
  readonly messages?: MessageDialect;
}

/** Marks that answers of this gateway carry and that only the provider they came from understands. */
const MARKS = ['reasoning', 'reasoning_content', 'reasoning_details', 'images', 'extra_content'];

/** Fields of OpenAI's own answers which strict validators refuse in a message that comes back. */
const ECHOES = ['refusal', 'annotations'];

const SAMPLING: Extensions = { top_k: single, min_p: single, repetition_penalty: single };
const TEMPLATE: Extensions = { chat_template_kwargs: anything };
const REASONING: Extensions = {
  reasoning: objectOf({ effort: single, max_tokens: single, exclude: single, enabled: single, summary: single }),
  include_reasoning: single,
};
const THINKING: Extensions = { thinking: objectOf({ type: single, budget_tokens: single, keep: single }) };

/** OpenAI's own alone. */
const MODERATION = ['moderation'];

const PENALTIES = ['presence_penalty', 'frequency_penalty'];

/** What vLLM, SGLang, llama.cpp, Ollama, LM Studio and the like document: sampling, templates, guided answers, thoughts. */
const DEFAULT: OpenAiDialect = {
  cannot: MODERATION,
  extensions: {
    ...SAMPLING,
    ...TEMPLATE,
    ...REASONING,
    ...THINKING,
    top_a: single,
    typical_p: single,
    repeat_penalty: single,
    repeat_last_n: single,
    stop_token_ids: listOf(single),
    include_stop_str_in_output: single,
    skip_special_tokens: single,
    spaces_between_special_tokens: single,
    add_generation_prompt: single,
    continue_final_message: single,
    cache_prompt: single,
    keep_alive: single,
    enable_thinking: single,
    thinking_budget: single,
    reasoning_format: single,
    grammar: single,
    guided_json: anything,
    guided_regex: single,
    guided_choice: listOf(single),
    guided_grammar: single,
    structured_outputs: anything,
  },
};

/** From the providers' documentation, as of late 2026; where that is silent, from the text of their 400s. */
const DIALECTS: ReadonlyMap<string, OpenAiDialect> = new Map<string, OpenAiDialect>([
  [
    'openai',
    // Reasoning models refuse `max_tokens`; every other model takes the newer field too.
    {
      maxTokens: 'max_completion_tokens',
      cannot: [],
      extensions: {},
      searchesUnreported: true,
      messages: { systemForDeveloper: false, leftOut: MARKS },
    },
  ],
  [
    'mistral',
    // 422 `extra_forbidden` for anything outside its schema, in messages too.
    {
      maxTokens: 'max_tokens',
      noStreamOptions: true,
      renamed: { seed: 'random_seed' },
      cannot: [
        ...MODERATION,
        'logit_bias',
        'logprobs',
        'metadata',
        'prompt_cache_key',
        'prompt_cache_options',
        'prompt_cache_retention',
        'safety_identifier',
        'service_tier',
        'store',
        'top_logprobs',
        'user',
        'verbosity',
        'web_search_options',
      ],
      extensions: { safe_prompt: single, random_seed: single, prompt_mode: single },
      messages: { systemForDeveloper: true, leftOut: [...MARKS, ...ECHOES, 'name'] },
    },
  ],
  [
    'groq',
    // "OpenAI compatibility": these are a 400, and `n` must be 1.
    {
      maxTokens: 'max_completion_tokens',
      cannot: [...MODERATION, 'logit_bias', 'logprobs', 'top_logprobs', 'n'],
      extensions: {
        reasoning_format: single,
        include_reasoning: single,
        disable_tool_validation: single,
        citation_options: single,
      },
      messages: { systemForDeveloper: false, leftOut: [...MARKS, ...ECHOES, 'name'] },
    },
  ],
  [
    'deepseek',
    // "Thinking mode": a turn that called tools without `reasoning_content` is a 400; elsewhere it is ignored.
    {
      maxTokens: 'max_tokens',
      cannot: MODERATION,
      extensions: THINKING,
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
      cannot: [...MODERATION, ...PENALTIES],
      extensions: {},
      messages: { systemForDeveloper: true, leftOut: MARKS },
    },
  ],
  [
    'together',
    {
      maxTokens: 'max_tokens',
      cannot: MODERATION,
      extensions: { ...SAMPLING, ...TEMPLATE, ...REASONING, context_length_exceeded_behavior: single },
    },
  ],
  [
    'fireworks',
    {
      maxTokens: 'max_tokens',
      cannot: MODERATION,
      extensions: {
        ...SAMPLING,
        ...THINKING,
        typical_p: single,
        mirostat_lr: single,
        mirostat_target: single,
        context_length_exceeded_behavior: single,
        prompt_truncate_len: single,
        reasoning_history: single,
        prompt_cache_isolation_key: single,
      },
      messages: { systemForDeveloper: true, leftOut: MARKS, thoughts: 'reasoning_content' },
    },
  ],
  [
    'cerebras',
    // 400 `wrong_api_format` for unknown properties; it wants thoughts back under the name that it gave them.
    {
      maxTokens: 'max_completion_tokens',
      cannot: [...MODERATION, ...PENALTIES, 'logit_bias'],
      extensions: { reasoning_format: single, disable_reasoning: single, clear_thinking: single },
      messages: { systemForDeveloper: true, leftOut: [...MARKS, ...ECHOES], thoughts: 'reasoning' },
    },
  ],
  [
    'moonshotai',
    // With thinking on, a turn that called tools without `reasoning_content` is a 400; sampling is fixed.
    {
      maxTokens: 'max_completion_tokens',
      cannot: [...MODERATION, ...PENALTIES, 'temperature', 'top_p', 'n'],
      extensions: THINKING,
      messages: {
        systemForDeveloper: true,
        leftOut: MARKS,
        thoughts: 'reasoning_content',
        thoughtsRequired: true,
      },
    },
  ],
  [
    'openrouter',
    // `models`, `route`, `plugins`, `provider` and `preset` choose other models or other prices: they are not in the table.
    {
      maxTokens: 'max_tokens',
      cannot: MODERATION,
      extensions: {
        ...SAMPLING,
        ...REASONING,
        top_a: single,
        transforms: listOf(single),
        usage: objectOf({ include: single }),
        image_config: objectOf({ aspect_ratio: single, image_size: single }),
        structured_outputs: single,
        session_id: single,
      },
    },
  ],
]);

/** The dialect of a provider of the catalogue; for any other, of a server that takes what OpenAI's takes. */
export const openAiDialect = (providerId: string): OpenAiDialect => DIALECTS.get(providerId) ?? DEFAULT;
