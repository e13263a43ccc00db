import { hash } from 'node:crypto';
import { normaliseUsage, type Usage } from '../../domain/usage.ts';
import type { ChatChoice, CompletionImage, FinishReason, ReasoningDetail, ToolCall } from '../../generated/types.ts';
import type { GatheredResponse } from '../../net/exchange.ts';
import type { UpstreamCompletion } from '../wire/adapter.ts';
import { count, type Fields, isRecord, modelId, parseJson, record } from '../wire/fields.ts';
import { badResponse } from '../wire/upstream-error.ts';
import { signatureField, toReasoningDetails } from './contents.ts';
import { refuseError } from './error.ts';
import { countsSearches } from './thinking.ts';

/** More candidates than any request may ask for. */
const MAX_CANDIDATES = 128;

/** A `GenerateContentResponse`, taken apart: a whole answer, or an event of a stream. */
export interface Taken {
  readonly candidates: readonly Fields[];
  /** Why the prompt was blocked. */
  readonly blocked: string | undefined;
  readonly model: string | undefined;
  readonly usage: unknown;
  readonly fields: Fields;
}

/** @throws UpstreamError `bad_response` for what is no answer; an error inside it as what it is */
export function takeApart(answer: unknown): Taken {
  if (!isRecord(answer)) throw badResponse('The provider sent a malformed answer.');
  refuseError(answer);
  const { candidates = [], promptFeedback, modelVersion, usageMetadata, error, ...rest } = answer;
  if (!Array.isArray(candidates) || !candidates.every(isRecord) || candidates.length > MAX_CANDIDATES) {
    throw badResponse('The provider sent a malformed answer.');
  }
  const { id, object, created, metadata, model, choices, usage, ...fields } = rest;
  return {
    candidates,
    blocked: blockReason(promptFeedback),
    model: modelId(modelVersion),
    usage: usageMetadata,
    fields,
  };
}

/** Which choice a candidate is; Google leaves the number out where there is one only. */
export const indexOf = (candidate: Fields, position: number): number => count(candidate.index) ?? position;

function toChoice(candidate: Fields, position: number, newCallId: NewCallId, shown: Shown): ChatChoice {
  const pieces = readCandidate(candidate, newCallId);
  noteUse(pieces, candidate, shown);
  const reason = finishReason(candidate.finishReason ?? 'STOP', pieces.calls.length > 0) ?? 'stop';
  const isSilent = pieces.calls.length > 0 || pieces.images.length > 0 || reason === 'content_filter';
  return {
    index: indexOf(candidate, position),
    finish_reason: reason,
    message: {
      role: 'assistant',
      content: pieces.text === '' && isSilent ? null : pieces.text,
      ...commonFields(pieces, candidate, 0),
      ...(pieces.calls.length === 0 ? {} : { tool_calls: [...pieces.calls] }),
    },
    ...toLogprobs(candidate.logprobsResult),
  };
}

/** A blocked prompt has no candidate there; a caller of OpenAI's form expects a choice: an empty one that says so. */
const blockedChoice = (reason: string): ChatChoice => ({
  index: 0,
  finish_reason: 'content_filter',
  message: { role: 'assistant', content: null, refusal: blockedText(reason) },
});

/** A whole answer. @throws UpstreamError `bad_response` also for one without candidates whose prompt was not blocked */
export function parseAnswer(response: GatheredResponse, newCallId: NewCallId): UpstreamCompletion {
  const { candidates, blocked, model, usage, fields } = takeApart(parseJson(response.text));
  const shown: Shown = { images: 0, queries: new Set() };
  const choices = candidates.map((candidate, position) => toChoice(candidate, position, newCallId, shown));
  if (choices.length === 0) {
    if (blocked === undefined) throw badResponse('The provider sent an empty answer.');
    choices.push(blockedChoice(blocked));
  }
  return { model, choices, usage: googleUsage(usage, model, shown), fields };
}

/** The parts of a candidate, or of a piece of one. */
export interface CandidatePieces {
  readonly text: string;
  readonly thoughts: string;
  /** Signatures of the text, in their order. */
  readonly signatures: readonly string[];
  readonly images: readonly CompletionImage[];
  readonly calls: readonly ToolCall[];
}

/** Makes the id of a tool call that came without one: never the same twice in a conversation. */
export type NewCallId = () => string;

const malformed = () => badResponse('The provider sent a malformed answer.');

const signatureOf = (part: Fields): string | undefined =>
  typeof part.thoughtSignature === 'string' && part.thoughtSignature !== '' ? part.thoughtSignature : undefined;

function toToolCall(part: Fields, call: Fields, newCallId: NewCallId): ToolCall {
  const { id, name, args = {} } = call;
  if (typeof name !== 'string' || !isRecord(args)) throw malformed();
  return {
    id: typeof id === 'string' && id !== '' ? id : newCallId(),
    type: 'function',
    function: { name, arguments: JSON.stringify(args) },
    ...signatureField(signatureOf(part)),
  };
}

function toImage(part: Fields): CompletionImage | undefined {
  const { mimeType, data } = record(part.inlineData);
  if (typeof data !== 'string' || typeof mimeType !== 'string' || !mimeType.startsWith('image/')) return undefined;
  return {
    type: 'image_url',
    image_url: { url: `data:${mimeType};base64,${data}` },
    ...signatureField(signatureOf(part)),
  };
}

function partsOf(candidate: Fields): Fields[] {
  const { content } = candidate;
  if (content === undefined || content === null) return [];
  const parts = record(content).parts ?? [];
  if (!isRecord(content) || !Array.isArray(parts) || !parts.every(isRecord)) throw malformed();
  return parts;
}

/** Reads a candidate's content. Images among the thoughts are drafts and left out. @throws UpstreamError `bad_response` */
export function readCandidate(candidate: Fields, newCallId: NewCallId): CandidatePieces {
  let text = '';
  let thoughts = '';
  const signatures: string[] = [];
  const images: CompletionImage[] = [];
  const calls: ToolCall[] = [];
  for (const part of partsOf(candidate)) {
    const { text: piece = '', thought, functionCall } = part;
    if (typeof piece !== 'string') throw malformed();
    if (isRecord(functionCall)) {
      calls.push(toToolCall(part, functionCall, newCallId));
      continue;
    }
    if (thought === true) thoughts += piece;
    else text += piece;
    const image = thought === true ? undefined : toImage(part);
    const signature = signatureOf(part);
    if (image !== undefined) images.push(image);
    else if (signature !== undefined) signatures.push(signature);
  }
  return { text, thoughts, signatures, images, calls };
}

/** The fields that a message and a delta have in common; `signatures` is how many the message had before. */
export function commonFields(
  pieces: CandidatePieces,
  candidate: Fields,
  signatures: number,
): { reasoning?: string; reasoning_details?: ReasoningDetail[]; images?: CompletionImage[] } {
  const { groundingMetadata: grounding } = candidate;
  return {
    ...(pieces.thoughts === '' ? {} : { reasoning: pieces.thoughts }),
    ...(pieces.signatures.length === 0 ? {} : { reasoning_details: toReasoningDetails(pieces.signatures, signatures) }),
    ...(pieces.images.length === 0 ? {} : { images: [...pieces.images] }),
    ...(isRecord(grounding) ? { extra_content: { google: { grounding_metadata: grounding } } } : {}),
  };
}

/** More searches than any answer takes. */
const MAX_QUERIES = 1000;

/** Notes what a candidate shows of its use: images, and the searches made for it; empty queries are not charged. */
export function noteUse(pieces: CandidatePieces, candidate: Fields, shown: Shown): void {
  shown.images += pieces.images.length;
  const { webSearchQueries: queries } = record(candidate.groundingMetadata);
  if (!Array.isArray(queries)) return;
  for (const query of queries) {
    if (shown.queries.size === MAX_QUERIES) return;
    // Kept until the stream ends: a hash of each takes little, however long they are.
    if (typeof query === 'string' && query !== '') shown.queries.add(hash('sha256', query));
  }
}

const FINISH_REASONS: ReadonlyMap<string, FinishReason> = new Map([
  ['MAX_TOKENS', 'length'],
  ['SAFETY', 'content_filter'],
  ['RECITATION', 'content_filter'],
  ['BLOCKLIST', 'content_filter'],
  ['PROHIBITED_CONTENT', 'content_filter'],
  ['SPII', 'content_filter'],
  ['IMAGE_SAFETY', 'content_filter'],
  ['IMAGE_PROHIBITED_CONTENT', 'content_filter'],
  ['IMAGE_RECITATION', 'content_filter'],
  ['MODEL_ARMOR', 'content_filter'],
]);

/** The model wrote something that its own provider could not read: another attempt may do better. */
const BROKEN: ReadonlySet<string> = new Set([
  'MALFORMED_FUNCTION_CALL',
  'MALFORMED_RESPONSE',
  'UNEXPECTED_TOOL_CALL',
  'MISSING_THOUGHT_SIGNATURE',
]);

/**
 * Why a candidate ended; undefined while it has not. A normal end after tool calls is `tool_calls`; whatever is not known is a
 * normal end.
 * @throws UpstreamError `bad_response` for an answer that broke
 */
export function finishReason(reported: unknown, calledTools: boolean): FinishReason | undefined {
  if (typeof reported !== 'string' || reported === '' || reported === 'FINISH_REASON_UNSPECIFIED') return undefined;
  if (BROKEN.has(reported)) throw badResponse('The provider could not read what its model wrote.');
  return FINISH_REASONS.get(reported) ?? (calledTools ? 'tool_calls' : 'stop');
}

/** Why the prompt was blocked, in the provider's word; undefined when it was not. */
function blockReason(feedback: unknown): string | undefined {
  if (typeof feedback !== 'object' || feedback === null || !('blockReason' in feedback)) return undefined;
  const { blockReason: reason } = feedback;
  if (typeof reason !== 'string' || reason === '' || reason === 'BLOCK_REASON_UNSPECIFIED') return undefined;
  return /^[A-Z_]{1,64}$/.test(reason) ? reason : 'OTHER';
}

/** The error for a blocked prompt, for which Google gives no candidate. */
export const blockedText = (reason: string): string => `The provider blocked the prompt: ${reason}.`;

/** A choice's `logprobs`: an index signature as the generated type has it. */
interface Logprobs {
  [field: string]: unknown;
}

const toToken = ({ token = '', logProbability = 0 }: Fields): Fields => ({
  token,
  logprob: logProbability,
  bytes: null,
});

/** `logprobsResult` in OpenAI's form: the chosen tokens, each with the likeliest ones at its place. */
export function toLogprobs(result: unknown): { logprobs?: Logprobs } {
  if (!isRecord(result) || !Array.isArray(result.chosenCandidates)) return {};
  const tops: unknown[] = Array.isArray(result.topCandidates) ? result.topCandidates : [];
  const content = result.chosenCandidates.map((chosen: unknown, position) => {
    const { candidates } = record(tops[position]);
    const likeliest = Array.isArray(candidates) ? candidates.filter(isRecord) : [];
    return { ...toToken(record(chosen)), top_logprobs: likeliest.map(toToken) };
  });
  return { logprobs: { content, refusal: null } };
}

/** Usage that an answer itself shows; the provider's numbers leave it out. */
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
