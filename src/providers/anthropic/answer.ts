import { normaliseUsage, type Usage } from '../../domain/usage.ts';
import type { CompletionMessage, FinishReason, ReasoningDetail, ToolCall } from '../../generated/types.ts';
import type { GatheredResponse } from '../../net/exchange.ts';
import type { UpstreamCompletion } from '../wire/adapter.ts';
import { count, type Fields, isRecord, modelId, parseJson, record } from '../wire/fields.ts';
import { badResponse } from '../wire/upstream-error.ts';
import { reportedError } from './error.ts';
import { encryptedDetail, textDetail } from './messages.ts';
import { ANSWER_TOOL } from './tools.ts';

/** A message in the making. */
interface Draft {
  content: string;
  reasoning: string;
  readonly details: ReasoningDetail[];
  readonly calls: ToolCall[];
  readonly annotations: Fields[];
}

/** A whole answer. @throws UpstreamError `bad_response`, or the error that the answer is */
export function parseResponse(response: GatheredResponse, secret?: string): UpstreamCompletion {
  const answer = parseJson(response.text);
  const error = reportedError(answer, secret);
  if (error !== undefined) throw error;
  if (!isRecord(answer) || !Array.isArray(answer.content)) throw malformed();
  if (answer.content.length > MAX_BLOCKS) throw badResponse('The provider sent too many blocks.');
  const draft: Draft = { content: '', reasoning: '', details: [], calls: [], annotations: [] };
  for (const [index, block] of answer.content.entries()) {
    if (!isRecord(block)) throw malformed();
    addBlock(draft, index, block);
  }
  const reason = typeof answer.stop_reason === 'string' ? answer.stop_reason : 'end_turn';
  const message = messageOf(draft, refusalText(answer.stop_details));
  return {
    model: modelId(answer.model),
    choices: [{ index: 0, message, finish_reason: finishReason(reason, draft.calls.length > 0) }],
    usage: anthropicUsage(reportUsage({}, answer.usage)),
    fields: otherFields(answer),
  };
}

const malformed = () => badResponse('The provider sent a malformed answer.');

const text = (value: unknown): string => (typeof value === 'string' ? value : '');

/** Blocks of other types (the provider's own tools and their results) tell the caller nothing that they could use. */
function addBlock(draft: Draft, index: number, block: Fields): void {
  switch (block.type) {
    case 'text': {
      const start = draft.content.length;
      draft.content += text(block.text);
      draft.annotations.push(...annotations(sourcesOf(block.citations), start, draft.content.length));
      break;
    }
    case 'thinking':
      draft.reasoning += text(block.thinking);
      draft.details.push(textDetail(index, { text: text(block.thinking), signature: text(block.signature) }));
      break;
    case 'redacted_thinking':
      draft.details.push(encryptedDetail(index, text(block.data)));
      break;
    case 'tool_use':
      addCall(draft, block);
      break;
  }
}

function addCall(draft: Draft, { id, name, input }: Fields): void {
  if (typeof id !== 'string' || typeof name !== 'string') throw malformed();
  const args = JSON.stringify(record(input));
  if (name === ANSWER_TOOL) draft.content += args;
  else draft.calls.push({ id, type: 'function', function: { name, arguments: args } });
}

function messageOf(draft: Draft, refusal: string | undefined): CompletionMessage {
  const { content, reasoning, details, calls, annotations: sources } = draft;
  return {
    role: 'assistant',
    content: content === '' && calls.length > 0 ? null : content,
    ...(reasoning === '' ? {} : { reasoning }),
    ...(details.length === 0 ? {} : { reasoning_details: details }),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
    ...(refusal === undefined ? {} : { refusal }),
    ...(sources.length === 0 ? {} : { annotations: sources }),
  };
}

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

/** Web source of a citation. */
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
const sourcesOf = (citations: unknown): Source[] =>
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

/** Counts as the API words them; absent: not reported. */
interface Counts {
  readonly input?: number | undefined;
  readonly output?: number | undefined;
  readonly cacheRead?: number | undefined;
  readonly cacheWrite?: number | undefined;
  readonly cacheWrite1h?: number | undefined;
  readonly thinking?: number | undefined;
  readonly webSearches?: number | undefined;
}

/** Usage that an answer has reported so far. */
export interface ReportedUsage extends Counts {
  /** Steps that summed the conversation up: the API bills them and leaves them out of its main numbers. */
  readonly compactions?: readonly Counts[] | undefined;
}

/** More steps than an answer takes. */
const MAX_STEPS = 1000;

/**
 * Merges the usage reported now into the usage reported before. Each field's last value holds: none is added up and none
 * compared, because some providers behind this API change a field's meaning between a stream's start and its end.
 */
export function reportUsage(before: ReportedUsage, reported: unknown): ReportedUsage {
  if (!isRecord(reported)) return before;
  const now: ReportedUsage = { ...counts(reported), compactions: compactions(reported.iterations) };
  return { ...before, ...Object.fromEntries(Object.entries(now).filter(([, value]) => value !== undefined)) };
}

function counts(reported: Readonly<Record<string, unknown>>): Counts {
  const writes = record(reported.cache_creation);
  const write1h = count(writes.ephemeral_1h_input_tokens);
  const write5m = count(writes.ephemeral_5m_input_tokens);
  const split = write1h === undefined && write5m === undefined ? undefined : (write1h ?? 0) + (write5m ?? 0);
  return {
    input: count(reported.input_tokens),
    output: count(reported.output_tokens),
    cacheRead: count(reported.cache_read_input_tokens),
    cacheWrite: count(reported.cache_creation_input_tokens) ?? split,
    cacheWrite1h: write1h,
    thinking: count(record(reported.output_tokens_details).thinking_tokens),
    webSearches: count(record(reported.server_tool_use).web_search_requests),
  };
}

function compactions(steps: unknown): Counts[] | undefined {
  if (!Array.isArray(steps)) return undefined;
  return steps
    .slice(0, MAX_STEPS)
    .filter((step: unknown) => isRecord(step))
    .filter(({ type }) => type === 'compaction')
    .map(counts);
}

/**
 * The usage in our form: there `input_tokens` leaves cache reads and writes out, ours counts them in. Writes of an hour are
 * counted apart once; the rest is of five minutes. Undefined when the two main numbers were not reported.
 */
export function anthropicUsage(reported: ReportedUsage): Usage | undefined {
  if (reported.input === undefined || reported.output === undefined) return undefined;
  const steps: readonly Counts[] = [reported, ...(reported.compactions ?? [])];
  const total = (part: (step: Counts) => number | undefined): number =>
    steps.reduce((sum, step) => sum + (part(step) ?? 0), 0);
  const cacheRead = total((step) => step.cacheRead);
  const cacheWrite = total((step) => step.cacheWrite);
  const cacheWrite1hTokens = total((step) => Math.min(step.cacheWrite1h ?? 0, step.cacheWrite ?? 0));
  return normaliseUsage({
    promptTokens: total((step) => step.input) + cacheRead + cacheWrite,
    completionTokens: total((step) => step.output),
    reasoningTokens: total((step) => step.thinking),
    cachedTokens: cacheRead,
    cacheWrite5mTokens: cacheWrite - cacheWrite1hTokens,
    cacheWrite1hTokens,
    webSearches: total((step) => step.webSearches),
  });
}
