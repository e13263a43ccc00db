import type { Mapping } from '../../domain/model.ts';
import type { CallMetadata, ChatChunk, ChatCompletion, ChatUsage, RoutingAttempt } from '../../generated/types.ts';
import type { UpstreamChunk } from '../../providers/wire/adapter.ts';
import type { Call, CallFacts } from '../call/call.ts';
import { type ProviderJson, WrittenAnswer } from '../call/written-answer.ts';
import { nameThoughts } from '../price/chunk-pieces.ts';
import type { CachedAnswer } from './response-cache.ts';

/** What all parts of one answer share. */
export interface AnswerFacts {
  readonly facts: CallFacts;
  readonly call: Pick<Call, 'id'>;
  readonly requestedProvider: string | undefined;
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

/** The answer's `metadata`, exactly as the specification and src/core/README.md, "metadata.routing", have it. */
export function callMetadata(
  { facts, call, requestedProvider }: AnswerFacts,
  mapping: Mapping,
  upstreamModel: string | undefined,
  routing: readonly RoutingAttempt[],
  cached = false,
): CallMetadata {
  return {
    request_id: facts.context.requestId,
    requested_model: facts.requestedModel,
    ...(requestedProvider === undefined ? {} : { requested_provider: requestedProvider }),
    used_model: mapping.modelId,
    used_provider: mapping.providerId,
    used_region: mapping.region ?? 'global',
    underlying_used_model: upstreamModel ?? mapping.externalId,
    log_id: call.id,
    organization_id: facts.principal.organizationId,
    project_id: facts.principal.projectId,
    discount: 0,
    cached,
    routing: [...routing],
  };
}

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
