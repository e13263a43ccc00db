import { normaliseUsage, type Usage } from '../../domain/usage.ts';
import { count, isRecord, record } from '../wire/json.ts';
import { countsSearches } from './model.ts';

/** What an answer itself shows of its use; the provider's numbers leave it out. */
export interface Shown {
  images: number;
  /** Hashes of the queries of Google's search. */
  readonly queries: Set<string>;
}

/** Tokens of one modality in a list of `ModalityTokenCount`. */
function ofModality(modality: string, ...lists: readonly unknown[]): number {
  let tokens = 0;
  for (const list of lists) {
    if (!Array.isArray(list)) continue;
    for (const entry of list) if (record(entry).modality === modality) tokens += count(record(entry).tokenCount) ?? 0;
  }
  return tokens;
}

/**
 * Usage as Gemini reports it: results of its own tools are apart from the prompt, thoughts apart from the answer; cached tokens
 * are part of the prompt. Undefined when there is none, or without a count of the prompt. Searches are counted as they are
 * charged: each query once, before Gemini 3 one for an answer.
 */
export function googleUsage(reported: unknown, model: string | undefined, shown: Shown): Usage | undefined {
  if (!isRecord(reported)) return undefined;
  const prompt = count(reported.promptTokenCount);
  if (prompt === undefined) return undefined;
  const thoughts = count(reported.thoughtsTokenCount) ?? 0;
  const inputs = [reported.promptTokensDetails, reported.toolUsePromptTokensDetails];
  const { size } = shown.queries;
  return normaliseUsage({
    promptTokens: prompt + (count(reported.toolUsePromptTokenCount) ?? 0),
    completionTokens: (count(reported.candidatesTokenCount) ?? 0) + thoughts,
    reasoningTokens: thoughts,
    cachedTokens: count(reported.cachedContentTokenCount) ?? 0,
    cachedAudioTokens: ofModality('AUDIO', reported.cacheTokensDetails),
    promptAudioTokens: ofModality('AUDIO', ...inputs),
    promptImageTokens: ofModality('IMAGE', ...inputs),
    promptVideoTokens: ofModality('VIDEO', ...inputs),
    completionAudioTokens: ofModality('AUDIO', reported.candidatesTokensDetails),
    completionImageTokens: ofModality('IMAGE', reported.candidatesTokensDetails),
    images: shown.images,
    webSearches: countsSearches(model ?? '') ? size : Math.min(1, size),
  });
}
