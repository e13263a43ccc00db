import { comparePrice } from '../catalog/cheapest.ts';
import { modelNotFound } from '../domain/errors.ts';
import type { Mapping } from '../domain/model.ts';
import { type Clock, isPast } from '../domain/time.ts';
import type { ChatRequest } from '../generated/types.ts';
import { unsupportedIn } from './chat-exchange.ts';
import { actionOf } from './permitted-ids.ts';
import type { FindReachable, ListCaller } from './reachable.ts';
import { takers } from './resolve.ts';

/** The request's `model` that leaves the choice to the gateway. */
export const AUTO = 'auto';

/** Candidates that a choice is made of; as many as one call has attempts. */
const CHOSEN = 3;
/** Candidates of a call of which none is permitted: enough to say why, and one evaluation. */
const REFUSED = 64;
/** An answer without a stated maximum has room for this many tokens at least. */
const USUAL_OUTPUT = 4096;

export interface ChooseAutoDeps {
  readonly findReachable: FindReachable;
  readonly clock: Clock;
}

/**
 * The candidates of `auto`: the three cheapest that fit the request and are permitted; where none is permitted, the 64 cheapest
 * that fit, so that the decision can say why (decisions.md, sections 5 and 6). It only chooses: the decision follows.
 * @throws ApiError 404 when nothing fits, PolicyFailure
 */
export type ChooseAuto = (request: ChatRequest, caller: ListCaller) => Promise<readonly Mapping[]>;

export function createChooseAuto({ findReachable, clock }: ChooseAutoDeps): ChooseAuto {
  return async (request, caller) => {
    const { reach, mappings, usable } = await findReachable(caller);
    const now = clock.now();
    const others = mappings.filter(({ providerId }) => providerId !== 'sandbox');
    const needs = needsOf(request);
    const fitting = (others.length > 0 ? others : mappings)
      .filter((mapping) => !isPast(mapping.deprecatedAt, now) && !isPast(mapping.deactivatedAt, now))
      .filter((mapping) => actionOf(mapping) === 'chat' && fits(mapping, needs))
      .sort(comparePrice);
    if (fitting.length === 0) throw modelNotFound('No model that this project has a credential for fits the request.');
    const able = takers(fitting, reach, unsupportedIn(request));
    const permitted = able.filter(usable);
    if (permitted.length === 0) return able.slice(0, REFUSED);
    return permitted.slice(0, CHOSEN);
  };
}

/** What a request asks of a model. */
interface Needs {
  readonly inputs: ReadonlySet<string>;
  readonly tools: boolean;
  readonly format: string | undefined;
  readonly stream: boolean;
  readonly reasoning: boolean;
  /** A guess, on the low side: four bytes a token. */
  readonly promptTokens: number;
  readonly outputTokens: number | undefined;
}

/** Parts of a message by the modality that a model must take. */
const MODALITY_OF_PART: Readonly<Record<string, string>> = {
  image_url: 'image',
  input_audio: 'audio',
  video_url: 'video',
  file: 'file',
};

function needsOf(request: ChatRequest): Needs {
  const inputs = new Set<string>();
  for (const { content } of request.messages) {
    for (const { type } of Array.isArray(content) ? content : []) {
      const modality = Object.hasOwn(MODALITY_OF_PART, type) ? MODALITY_OF_PART[type] : undefined;
      if (modality !== undefined) inputs.add(modality);
    }
  }
  const effort = request.reasoning_effort ?? 'none';
  return {
    inputs,
    tools: (request.tools ?? request.functions ?? []).length > 0,
    format: request.response_format?.type,
    stream: request.stream === true,
    reasoning: effort !== 'none',
    promptTokens: Math.floor(textLength(request) / 4),
    outputTokens: request.max_completion_tokens ?? request.max_tokens ?? undefined,
  };
}

function textLength({ messages }: ChatRequest): number {
  let length = 0;
  for (const { content } of messages) {
    if (typeof content === 'string') length += content.length;
    else for (const part of content ?? []) length += part.text?.length ?? 0;
  }
  return length;
}

function fits(mapping: Mapping, needs: Needs): boolean {
  for (const input of needs.inputs) if (!mapping.inputModalities.includes(input)) return false;
  if (needs.tools && !mapping.tools) return false;
  if (needs.format === 'json_schema' && !mapping.structuredOutputs) return false;
  if (needs.format === 'json_object' && !mapping.jsonOutput) return false;
  if ((needs.stream && !mapping.streaming) || (needs.reasoning && !mapping.reasoning)) return false;
  const { contextLength = Number.POSITIVE_INFINITY, maxOutput = Number.POSITIVE_INFINITY } = mapping;
  if (needs.outputTokens !== undefined && needs.outputTokens > maxOutput) return false;
  return needs.promptTokens + (needs.outputTokens ?? Math.min(USUAL_OUTPUT, maxOutput)) <= contextLength;
}
