import type { CallMetadata, ChatChunk, ChatCompletion, ChatUsage } from '../../generated/types.ts';
import type { UpstreamChunk } from '../../providers/wire/adapter.ts';
import type { Call } from '../call/call.ts';
import { type ProviderJson, WrittenAnswer } from '../call/written-answer.ts';
import { nameThoughts } from '../price/chunk-pieces.ts';
import type { CachedAnswer } from './response-cache.ts';

/** What all parts of one answer share. */
export interface AnswerFacts {
  readonly call: Pick<Call, 'id' | 'facts'>;
  /** Seconds since 1970: one `created` for the whole answer. */
  readonly created: number;
}

/** An answer that a provider is to give. */
export interface DispatchedAnswer extends AnswerFacts {
  readonly call: Call;
  /** Keeps the answer for the next caller; absent where nothing is kept. */
  readonly keep?: (answer: CachedAnswer) => void;
}

/** Its choices are the provider's. */
export type WrittenCompletion = WrittenAnswer<Omit<ChatCompletion, 'choices'>>;

/** A whole answer, or a stream of chunks; nothing of a stream is asked of the upstream before its first chunk is asked for. */
export type ChatOutcome =
  | { readonly kind: 'completion'; readonly completion: WrittenCompletion }
  | { readonly kind: 'stream'; readonly chunks: AsyncIterable<ChatChunk | WrittenAnswer<ChatChunk>> };

const answerId = (callId: string): string => `chatcmpl-${callId.slice('call_'.length)}`;

/** A whole answer. @param upstream its choices, and fields that nobody here knows */
export function chatCompletion(
  answer: AnswerFacts,
  upstream: ProviderJson,
  modelId: string,
  usage: ChatUsage,
  metadata: CallMetadata,
): WrittenCompletion {
  const ours = {
    id: answerId(answer.call.id),
    object: 'chat.completion' as const,
    created: answer.created,
    model: modelId,
    usage,
    metadata,
  };
  return new WrittenAnswer(ours, upstream);
}

/** One chunk of a streamed answer. Thoughts get both of their names, in place. */
export function chatChunk(
  answer: AnswerFacts,
  upstream: Pick<UpstreamChunk, 'choices' | 'fields'>,
  modelId: string,
  end: Pick<ChatChunk, 'usage' | 'metadata'> = {},
): ChatChunk {
  for (const { delta } of upstream.choices) nameThoughts(delta);
  return {
    ...upstream.fields,
    id: answerId(answer.call.id),
    object: 'chat.completion.chunk',
    created: answer.created,
    model: modelId,
    choices: [...upstream.choices],
    ...end,
  };
}
