import type { Mapping } from '../domain/model.ts';
import { normaliseUsage, type Usage } from '../domain/usage.ts';
import type { ImageRequest } from '../generated/types.ts';
import type { GatheredResponse } from '../net/exchange.ts';
import type { OutboundRequest } from '../net/transport.ts';
import type { Endpoint, ImageCall, UpstreamImage, UpstreamImages, WholeTranslation } from './adapter.ts';
import { count, isRecord, modelId, record } from './json.ts';
import { openAiChatImages } from './openai-chat-images.ts';
import { openAiUsage } from './openai-usage.ts';
import { openAiAnswer, openAiPost } from './openai-whole.ts';
import { badResponse, notTakenByProvider } from './upstream-error.ts';

/** More images than any request may ask for are not what was asked for. */
const MAX_IMAGES = 10;

/** These always answer in base64, and refuse the very field that would say so. */
const BASE64_ONLY = /^(?:openai\/)?(?:chat)?gpt-image\b/;

const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;
/** Anything else could be a script where a browser shows the picture. */
const IMAGE_URL = /^(?:https?:\/\/|data:image\/)/i;

/** Image generation at every server that speaks OpenAI's wire format. */
export const openAiImages: WholeTranslation<ImageCall, UpstreamImages> = { buildRequest, parseResponse };

/**
 * The caller's request with our `model`; unknown fields go along, `stream` (which can only be false) does not. What the provider
 * is known not to take is refused rather than left out, because the picture would not be the one that was asked for.
 */
function buildRequest(call: ImageCall, endpoint: Endpoint): OutboundRequest {
  const { request, mapping } = call;
  if (drawsInChats(mapping)) return openAiChatImages.buildRequest(call, endpoint);
  const { stream: _, response_format: form, aspect_ratio: ratio, ...rest } = request;
  if (isGiven(ratio) && !takesAspectRatio(mapping)) {
    throw notTakenByProvider(`${mapping.id} takes no aspect_ratio: ask for a size.`);
  }
  const base64Only = BASE64_ONLY.test(mapping.externalId);
  if (form === 'url' && base64Only) throw notTakenByProvider(`${mapping.id} gives no URLs: ask for b64_json.`);
  const body: ImageRequest = {
    ...rest,
    ...(isGiven(ratio) ? { aspect_ratio: ratio } : {}),
    ...(isGiven(form) && !base64Only ? { response_format: form } : {}),
    model: mapping.externalId,
  };
  return openAiPost('/images/generations', body, endpoint);
}

/** A model that gives text beside images has no endpoint for images alone. */
const drawsInChats = ({ outputModalities }: Mapping): boolean =>
  outputModalities.includes('text') && outputModalities.includes('image');

const isGiven = <T>(value: T | null | undefined): value is T => value !== undefined && value !== null;

/** OpenAI takes none; of another provider's model it is not known unless the catalogue says what the model takes. */
const takesAspectRatio = ({ providerId, supportedParameters }: Mapping): boolean =>
  providerId !== 'openai' && (supportedParameters === undefined || supportedParameters.includes('aspect_ratio'));

function parseResponse(response: GatheredResponse, call: ImageCall, secret?: string): UpstreamImages {
  if (drawsInChats(call.mapping)) return openAiChatImages.parseResponse(response, call, secret);
  const { created, data, usage, metadata, model, error, ...fields } = openAiAnswer(response.text, secret);
  if (!Array.isArray(data)) throw badResponse('The provider sent a malformed answer.');
  if (data.length === 0) throw badResponse('The provider sent no image.');
  if (data.length > MAX_IMAGES) throw badResponse('The provider sent too many images.');
  const images = data.map(parseImage);
  return {
    model: modelId(model),
    images,
    usage: normaliseUsage({ ...(imageUsage(usage) ?? openAiUsage(usage)), images: images.length }),
    fields,
  };
}

function parseImage(item: unknown): UpstreamImage {
  if (!isRecord(item)) throw badResponse('The provider sent a malformed image.');
  const { b64_json: base64, url, revised_prompt: revisedPrompt } = item;
  const said = typeof revisedPrompt === 'string' ? { revisedPrompt } : {};
  if (typeof base64 === 'string' && BASE64.test(base64)) return { base64, ...said };
  if (!isGiven(base64) && typeof url === 'string' && IMAGE_URL.test(url)) return { url, ...said };
  throw badResponse('The provider sent a malformed image.');
}

/** Tokens by OpenAI's names for image calls; undefined when there are none by these names. What comes out is image unless said. */
function imageUsage(reported: unknown): Partial<Usage> | undefined {
  if (!isRecord(reported)) return undefined;
  const promptTokens = count(reported.input_tokens);
  const completionTokens = count(reported.output_tokens);
  if (promptTokens === undefined || completionTokens === undefined) return undefined;
  const input = record(reported.input_tokens_details);
  const output = record(reported.output_tokens_details);
  return {
    promptTokens,
    completionTokens,
    cachedTokens: count(input.cached_tokens) ?? 0,
    promptImageTokens: count(input.image_tokens) ?? 0,
    completionImageTokens: count(output.image_tokens) ?? completionTokens,
  };
}
