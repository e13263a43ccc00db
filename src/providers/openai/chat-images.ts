import type { GatheredResponse } from '../../net/exchange.ts';
import type { OutboundRequest } from '../../net/transport.ts';
import type { Endpoint, ImageCall, UpstreamImage, UpstreamImages, WholeTranslation } from '../wire/adapter.ts';
import { aspectRatio } from '../wire/image-ratio.ts';
import { isRecord, modelId, record } from '../wire/json.ts';
import { badResponse, notTakenByProvider } from '../wire/upstream-error.ts';
import { openAiUsage } from './usage.ts';
import { openAiAnswer, openAiPost } from './whole.ts';

/**
 * Image generation by models that give text and images: they have no endpoint of their own but draw in a chat, the picture next to
 * the text of the message (OpenRouter's documentation, "Image generation").
 */
export const openAiChatImages: WholeTranslation<ImageCall, UpstreamImages> = { buildRequest, parseResponse };

/** The prompt as a message. Sizes become the nearest ratio; quality, format and the like are the model's own. */
function buildRequest({ request, mapping }: ImageCall, endpoint: Endpoint): OutboundRequest {
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

function parseResponse({ text }: GatheredResponse, _: ImageCall, secret?: string): UpstreamImages {
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
