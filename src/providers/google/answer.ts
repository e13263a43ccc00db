import type { ChatChoice } from '../../generated/types.ts';
import type { GatheredResponse } from '../../net/exchange.ts';
import type { UpstreamCompletion } from '../wire/adapter.ts';
import { count, isRecord, modelId, parseJson } from '../wire/json.ts';
import { badResponse } from '../wire/upstream-error.ts';
import { commonFields, type NewCallId, noteUse, readCandidate } from './candidate.ts';
import { refuseError } from './error.ts';
import { blockedText, blockReason, finishReason } from './finish.ts';
import { toLogprobs } from './logprobs.ts';
import { googleUsage, type Shown } from './usage.ts';

type Fields = Readonly<Record<string, unknown>>;

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
  const said = readCandidate(candidate, newCallId);
  noteUse(said, candidate, shown);
  const reason = finishReason(candidate.finishReason ?? 'STOP', said.calls.length > 0) ?? 'stop';
  const isSilent = said.calls.length > 0 || said.images.length > 0 || reason === 'content_filter';
  return {
    index: indexOf(candidate, position),
    finish_reason: reason,
    message: {
      role: 'assistant',
      content: said.text === '' && isSilent ? null : said.text,
      ...commonFields(said, candidate, 0),
      ...(said.calls.length === 0 ? {} : { tool_calls: [...said.calls] }),
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
