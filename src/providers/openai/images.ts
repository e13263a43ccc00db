import type { Mapping } from '../../domain/model.ts';
import { NO_USAGE, normaliseUsage, type Usage } from '../../domain/usage.ts';
import type { ImageRequest } from '../../generated/types.ts';
import { streamEvents } from '../../net/event-stream.ts';
import type { GatheredResponse, StreamedResponse } from '../../net/exchange.ts';
import type { OutboundRequest } from '../../net/transport.ts';
import type {
  Endpoint,
  ImageCall,
  ImageTranslation,
  PartialImage,
  UpstreamImage,
  UpstreamImages,
  WholeTranslation,
} from '../wire/adapter.ts';
import {
  aspectRatio,
  count,
  droppedForRatio,
  eventJson,
  isRecord,
  modelId,
  paidFor,
  record,
  takenImageFields,
} from '../wire/fields.ts';
import { badResponse, notTakenByProvider } from '../wire/upstream-error.ts';
import { disguisedError, isError, openAiAnswer, openAiUsage } from './answer.ts';
import { openAiPost } from './request.ts';

/** More images than any request may ask for are not what was asked for. */
const MAX_IMAGES = 10;

/** More partial images than any request may ask for. */
const MAX_PARTIAL_IMAGES = 3;

/** These always answer in base64, and refuse the very field that would say so. */
const BASE64_ONLY = /^(?:openai\/)?(?:chat)?gpt-image\b/;

const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;
/** Anything else could be a script where a browser shows the picture. */
const IMAGE_URL = /^(?:https?:\/\/|data:image\/)/i;

/** Image generation at every server that speaks OpenAI's wire format. */
export const openAiImages: ImageTranslation = {
  buildRequest,
  parseResponse,
  dropped: ({ request, mapping }) => (drawsInChats(mapping) ? droppedForRatio(request) : []),
  takesAspectRatio: (mapping) => drawsInChats(mapping) || takesAspectRatio(mapping),
  partials: { areGiven: givesPartials, parseStream },
};

/** A stream is worth asking for where it holds more than the image. */
function givesPartials({ request, mapping }: ImageCall): boolean {
  const { stream, partial_images: partials, n } = request;
  const isKnown = mapping.supportedParameters?.includes('partial_images') === true;
  return isKnown && stream === true && (partials ?? 0) > 0 && (n ?? 1) === 1;
}

/**
 * The caller's request with our `model`. What the provider is known not to take is refused rather than left out, because the
 * picture would not be the one that was asked for.
 */
function buildRequest(call: ImageCall, endpoint: Endpoint): OutboundRequest {
  const { request, mapping, namedFields } = call;
  if (drawsInChats(mapping)) return openAiChatImages.buildRequest(call, endpoint);
  const taken = takenImageFields(request, namedFields);
  const { stream: _, partial_images: partials, response_format: form, aspect_ratio: ratio, ...rest } = taken;
  const streams = givesPartials(call);
  if (isGiven(ratio) && !takesAspectRatio(mapping)) {
    throw notTakenByProvider(`${mapping.id} takes no aspect_ratio: ask for a size.`);
  }
  const base64Only = BASE64_ONLY.test(mapping.externalId);
  if (form === 'url' && base64Only) throw notTakenByProvider(`${mapping.id} gives no URLs: ask for b64_json.`);
  const body: ImageRequest = {
    prompt: request.prompt,
    ...rest,
    ...(isGiven(ratio) ? { aspect_ratio: ratio } : {}),
    ...(isGiven(form) && !base64Only ? { response_format: form } : {}),
    ...(streams ? { stream: true, partial_images: partials } : {}),
    model: mapping.externalId,
  };
  return openAiPost('/images/generations', body, endpoint, streams);
}

/** A model that gives text as well as images has no endpoint for images alone. */
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
  return answerOf(data.map(parseImage), model, usage, fields);
}

const answerOf = (
  images: readonly UpstreamImage[],
  model: unknown,
  usage: unknown,
  fields: UpstreamImages['fields'],
): UpstreamImages => ({
  model: modelId(model),
  images,
  usage: { ...(imageUsage(usage) ?? openAiUsage(usage) ?? NO_USAGE), images: images.length },
  fields,
});

/** OpenAI's guide "Image generation", "Streaming": drafts, then the image with its usage. */
async function parseStream(
  response: StreamedResponse,
  onPartial: (partial: PartialImage) => void,
  secret?: string,
): Promise<UpstreamImages> {
  let partials = 0;
  for await (const events of streamEvents(response)) {
    for (const event of events) {
      if (event.data === '[DONE]') throw badResponse('The provider sent no image.');
      const parsed = eventJson(event);
      if (!isRecord(parsed)) throw badResponse('The provider sent a malformed event.');
      if (event.event === 'error' || isError(parsed)) throw disguisedError(parsed, secret);
      const { type, created_at, usage, metadata, model, error, ...fields } = parsed;
      if (type === 'image_generation.completed') {
        response.drain();
        const { b64_json, url, revised_prompt, ...others } = fields;
        const image = paidFor(
          () => imageUsage(usage),
          () => parseImage(fields),
        );
        return answerOf([image], model, usage, others);
      }
      if (type !== 'image_generation.partial_image') continue;
      const { b64_json: base64, partial_image_index: _, ...others } = fields;
      if (typeof base64 !== 'string' || !BASE64.test(base64)) throw badResponse('The provider sent a malformed image.');
      if (partials === MAX_PARTIAL_IMAGES) throw badResponse('The provider sent too many partial images.');
      onPartial({ base64, position: partials++, fields: others });
    }
  }
  throw badResponse("The provider's stream was cut off.");
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
export function imageUsage(reported: unknown): Usage | undefined {
  if (!isRecord(reported)) return undefined;
  const promptTokens = count(reported.input_tokens);
  const completionTokens = count(reported.output_tokens);
  if (promptTokens === undefined || completionTokens === undefined) return undefined;
  const input = record(reported.input_tokens_details);
  const output = record(reported.output_tokens_details);
  return normaliseUsage({
    promptTokens,
    completionTokens,
    cachedTokens: count(input.cached_tokens) ?? 0,
    promptImageTokens: count(input.image_tokens) ?? 0,
    completionImageTokens: count(output.image_tokens) ?? completionTokens,
  });
}

/**
 * Image generation by models that give text and images: they have no endpoint of their own but draw in a chat, the picture next to
 * the text of the message (OpenRouter's documentation, "Image generation").
 */
const openAiChatImages: WholeTranslation<ImageCall, UpstreamImages> = {
  buildRequest: buildChatRequest,
  parseResponse: parseChatResponse,
};

/** The prompt as a message. Sizes become the nearest ratio; quality, format and the like are the model's own. */
function buildChatRequest({ request, mapping }: ImageCall, endpoint: Endpoint): OutboundRequest {
  const { prompt, user } = request;
  if ((request.n ?? 1) > 1) throw notTakenByProvider(`${mapping.id} makes one image at a time.`);
  if (request.response_format === 'url') {
    throw notTakenByProvider(`${mapping.id} gives no URLs: ask for b64_json.`);
  }
  const ratio = aspectRatio(request);
  const body = {
    model: mapping.externalId,
    messages: [{ role: 'user', content: prompt }],
    modalities: ['image', 'text'],
    ...(ratio === undefined ? {} : { image_config: { aspect_ratio: ratio } }),
    ...(typeof user === 'string' ? { user } : {}),
  };
  return openAiPost('/chat/completions', body, endpoint);
}

function parseChatResponse({ text }: GatheredResponse, _: ImageCall, secret?: string): UpstreamImages {
  const { model, choices, usage } = openAiAnswer(text, secret);
  if (!Array.isArray(choices)) throw badResponse('The provider sent a malformed answer.');
  const images = choices.flatMap((choice: unknown) => imagesOf(record(record(choice).message).images));
  if (images.length === 0) throw badResponse('The provider sent no image.');
  const reported = openAiUsage(usage);
  return {
    model: modelId(model),
    images,
    usage: reported && { ...reported, images: images.length },
    fields: {},
  };
}

const DATA_URL = /^data:image\/[a-z0-9.+-]+;base64,([A-Za-z0-9+/]+={0,2})$/i;

function imagesOf(parts: unknown): UpstreamImage[] {
  if (!Array.isArray(parts)) return [];
  return parts.map((part: unknown) => {
    const { image_url: image } = isRecord(part) ? part : {};
    const { url } = record(image);
    const [, base64] = typeof url === 'string' ? (DATA_URL.exec(url) ?? []) : [];
    if (base64 === undefined) throw badResponse('The provider sent a malformed image.');
    return { base64 };
  });
}
