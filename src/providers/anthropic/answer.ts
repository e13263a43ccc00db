import type { FinishReason } from '../../generated/types.ts';
import { isRecord } from '../wire/json.ts';

type Fields = Readonly<Record<string, unknown>>;

/** Blocks of one answer, and citations of one block: more than any answer has. */
export const MAX_BLOCKS = 1000;

/** Whatever is not known counts as a normal end. */
const FINISH_REASONS: ReadonlyMap<string, FinishReason> = new Map([
  ['max_tokens', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['refusal', 'content_filter'],
]);

/** `tool_calls` when the caller's tools were called, whatever the provider says; being cut short or refused wins over that. */
export const finishReason = (stopReason: string, calledTools: boolean): FinishReason =>
  FINISH_REASONS.get(stopReason) ?? (calledTools ? 'tool_calls' : 'stop');

/** Where on the web a citation is from. */
export interface Source {
  readonly url: string;
  readonly title: string;
}

/** Undefined for a citation of the caller's own documents. */
export function sourceOf(citation: unknown): Source | undefined {
  if (!isRecord(citation) || typeof citation.url !== 'string') return undefined;
  return { url: citation.url, title: typeof citation.title === 'string' ? citation.title : citation.url };
}

/** Sources of a text that begins and ends there in the content. */
export const annotations = (sources: readonly Source[], start: number, end: number): Fields[] =>
  sources.map((source) => ({ type: 'url_citation', url_citation: { ...source, start_index: start, end_index: end } }));

/** The sources of a whole text. */
export const sourcesOf = (citations: unknown): Source[] =>
  (Array.isArray(citations) ? citations.slice(0, MAX_BLOCKS) : []).flatMap(
    (citation: unknown) => sourceOf(citation) ?? [],
  );

/** Why the provider refused, if it says so. */
export const refusalText = (details: unknown): string | undefined =>
  isRecord(details) && typeof details.explanation === 'string' ? details.explanation : undefined;

/** Top-level fields of an answer that are ours to pass on: what is null says nothing. */
export function otherFields(answer: Fields): Fields {
  const { id, type, role, model, content, stop_reason, usage, object, created, metadata, choices, ...rest } = answer;
  return Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== null));
}
