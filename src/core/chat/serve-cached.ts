import { NO_USAGE } from '../../domain/usage.ts';
import type { ChatChunk, ChatRequest } from '../../generated/types.ts';
import type { Permitted } from '../access/authorize.ts';
import { type CallDeps, type CallFacts, callMetadata } from '../call/call.ts';
import { recordCacheHit } from '../call/open-call.ts';
import { chatUsage, costOf } from '../price/meter.ts';
import { type AnswerFacts, type ChatOutcome, chatChunk, chatCompletion } from './chat-answer.ts';
import type { CachedAnswer, CacheKey, KeptStream, ResponseCache } from './response-cache.ts';

/** A kept answer of the first permitted candidate that has one: only who may be called may be quoted. */
export function findCached(cache: ResponseCache, key: CacheKey, { candidates }: Permitted): CachedAnswer | undefined {
  for (const mapping of candidates) {
    const hit = cache.get(key(mapping));
    if (hit !== undefined) return hit;
  }
  return undefined;
}

/** Gives a kept answer again, under a call of its own that costs nothing; resolves when that is on record. */
export async function serveCached(
  deps: CallDeps,
  facts: CallFacts,
  created: number,
  permitted: Permitted,
  request: ChatRequest,
  { mapping, upstreamModel, usage, dropped, kept }: CachedAnswer,
): Promise<ChatOutcome> {
  const call = { id: await recordCacheHit(deps, facts, permitted, mapping), facts };
  const answer: AnswerFacts = { call, created };
  facts.context.onCacheHit();
  facts.context.onDropped(dropped);
  const metadata = callMetadata(call, mapping, upstreamModel, [], true);
  const free = chatUsage(usage, costOf(NO_USAGE, { prices: {} }));
  if (kept.kind === 'whole') {
    return { kind: 'completion', completion: chatCompletion(answer, kept.json, mapping.modelId, free, metadata) };
  }
  return { kind: 'stream', chunks: streamCached(answer, request, mapping.modelId, kept, { usage: free, metadata }) };
}

async function* streamCached(
  answer: AnswerFacts,
  request: ChatRequest,
  modelId: string,
  kept: KeptStream,
  end: Pick<ChatChunk, 'usage' | 'metadata'>,
): AsyncGenerator<ChatChunk, void, undefined> {
  const wantsUsageChunk = request.stream_options?.include_usage === true;
  const beforeEnd = wantsUsageChunk ? { usage: null } : {};
  let held: Parameters<typeof chatChunk>[1] | undefined;
  for (const chunk of kept.chunks()) {
    if (held !== undefined) yield chatChunk(answer, held, modelId, beforeEnd);
    held = chunk;
  }
  const last = held ?? { choices: [], fields: {} };
  yield chatChunk(answer, last, modelId, wantsUsageChunk ? beforeEnd : end);
  if (wantsUsageChunk) yield chatChunk(answer, { choices: [], fields: {} }, modelId, end);
}
