import type { Catalog } from '../catalog/catalog.ts';
import { type ApiError, modelNotFound, permissionDenied } from '../domain/errors.ts';
import { comparePrice, type Mapping } from '../domain/model.ts';
import { SANDBOX } from '../domain/provider.ts';
import { isPast } from '../domain/time.ts';
import type { ChatRequest } from '../generated/types.ts';
import type { CoreContext } from './core-context.ts';
import { actionOf } from './operations.ts';
import type { ListCaller } from './reachable.ts';
import { serves } from './resolve.ts';

/** The request's `model` that leaves the choice to the gateway. */
export const AUTO = 'auto';

/** Candidates that a choice is made of; as many as one call has attempts. */
export const CHOSEN = 3;
/** Candidates of a call of which none is permitted: enough to say why, and one evaluation. */
const REFUSED = 64;
/** An answer without a stated maximum has room for this many tokens at least. */
const USUAL_OUTPUT = 4096;

/**
 * The mappings that `auto` can choose for a request, cheapest first: chat models that fit it and are not announced to end; the
 * sandbox only where there is nothing else. @param mappings all with a credential @param now epoch ms
 */
export function choicesFor(request: ChatRequest, mappings: readonly Mapping[], now: number): Mapping[] {
  const others = mappings.filter(({ providerId }) => providerId !== 'sandbox');
  const needs = needsOf(request);
  return (others.length > 0 ? others : mappings)
    .filter((mapping) => !isPast(mapping.deprecatedAt, now) && !isPast(mapping.deactivatedAt, now))
    .filter((mapping) => actionOf(mapping) === 'chat' && fits(mapping, needs))
    .sort(comparePrice);
}

/** The candidates of a call among its choices: the three cheapest that are usable; where none is, the 64 cheapest. */
export function choose(choices: readonly Mapping[], usable: (mapping: Mapping) => boolean): readonly Mapping[] {
  const permitted = choices.filter(usable);
  return permitted.length === 0 ? choices.slice(0, REFUSED) : permitted.slice(0, CHOSEN);
}

/** The answer where nothing can be chosen. */
export const nothingFits = (): ApiError =>
  modelNotFound('No model that this project has a credential for fits the request.');

/** Capabilities that a request needs of a model. */
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

/** The models of requests that name none, or none that counts: for the whole installation, as long as the process runs. */
export interface UnnamedModels {
  /** The default model of an image request. */
  readonly image: string;
  /** Whatever a moderation names. */
  readonly moderation: string;
}

/** Those of the operator's settings; undefined where the operator leaves the choice to the gateway. */
type NamedModels = Readonly<{ [Action in keyof UnnamedModels]: string | undefined }>;

/**
 * The operator's models. Where none is named: the cheapest model of a provider with a credential, without those whose end is
 * announced; else the sandbox's. @param now epoch ms
 */
export function unnamedModels(
  { image, moderation }: NamedModels,
  {
    catalog,
    servedProviders,
  }: { readonly catalog: Pick<Catalog, 'mappings'>; readonly servedProviders: ReadonlySet<string> },
  now: number,
): UnnamedModels {
  const cheapest = (action: 'image' | 'moderation'): string | undefined =>
    catalog
      .mappings()
      .filter((mapping) => mapping.providerId !== SANDBOX && servedProviders.has(mapping.providerId))
      .filter((mapping) => !isPast(mapping.deprecatedAt, now) && !isPast(mapping.deactivatedAt, now))
      .filter(({ outputModalities }) => outputModalities.includes(action))
      .toSorted(comparePrice)[0]?.modelId;
  return {
    image: image ?? cheapest('image') ?? 'sandbox-image-plus',
    moderation: moderation ?? cheapest('moderation') ?? 'sandbox-moderation',
  };
}

/**
 * The cheapest image model that a caller can use and that takes an aspect ratio, as `provider/model`; the sandbox's only where
 * there is no other. It only chooses: the decision follows. @throws ApiError 403 where there is none, PolicyFailure
 */
export async function findImageModel(
  app: Pick<CoreContext, 'findReachable' | 'clock'>,
  caller: ListCaller,
): Promise<string> {
  const { reach, mappings, usable } = await app.findReachable(caller);
  const now = app.clock.now();
  const fitting = mappings.filter(
    (mapping) =>
      !isPast(mapping.deactivatedAt, now) &&
      serves(mapping, 'image', reach) &&
      reach.provider(mapping)?.adapter.images?.takesAspectRatio(mapping) === true &&
      usable(mapping),
  );
  const others = fitting.filter(({ providerId }) => providerId !== SANDBOX);
  const [cheapest] = (others.length > 0 ? others : fitting).toSorted(comparePrice);
  if (cheapest === undefined)
    throw permissionDenied('Access denied: this key can use no image model that takes an aspect ratio.');
  return cheapest.id;
}
