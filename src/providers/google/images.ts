import type { GatheredResponse } from '../../net/exchange.ts';
import type { OutboundRequest } from '../../net/transport.ts';
import type { Endpoint, ImageCall, ImageTranslation, UpstreamImage, UpstreamImages } from '../wire/adapter.ts';
import { aspectRatio, droppedForRatio, parseJson, record } from '../wire/fields.ts';
import { badResponse, notTakenByProvider, UpstreamError } from '../wire/upstream-error.ts';
import { blockedText, finishReason, googleUsage, takeApart } from './answer.ts';
import { googleOptions, googleRequest } from './request.ts';

/** An image is asked for as an answer that consists of one; sizes become the nearest ratio, quality and format are its own. */
function buildRequest(call: ImageCall, endpoint: Endpoint): OutboundRequest {
  const { request, mapping } = call;
  if ((request.n ?? 1) > 1) throw notTakenByProvider('This provider makes one image at a time.');
  if (request.response_format === 'url') throw notTakenByProvider('This provider gives no URLs: ask for b64_json.');
  const ratio = aspectRatio(request);
  const { body: own, generation } = googleOptions(request);
  const imageConfig = { ...(ratio === undefined ? {} : { aspectRatio: ratio }), ...record(generation.imageConfig) };
  const body = {
    contents: [{ role: 'user', parts: [{ text: request.prompt }] }],
    generationConfig: {
      responseModalities: ['IMAGE'],
      ...generation,
      ...(Object.keys(imageConfig).length === 0 ? {} : { imageConfig }),
    },
    ...own,
  };
  return googleRequest(endpoint, mapping.externalId, body, false);
}

const imagesOf = (candidate: Readonly<Record<string, unknown>>): UpstreamImage[] => {
  const { parts } = record(candidate.content);
  if (!Array.isArray(parts)) return [];
  return parts.flatMap((part: unknown) => {
    const { data, mimeType } = record(record(part).inlineData);
    const isImage = typeof mimeType === 'string' && mimeType.startsWith('image/');
    // Images among the thoughts are drafts.
    return typeof data === 'string' && isImage && record(part).thought !== true ? [{ base64: data }] : [];
  });
};

/** @throws UpstreamError `rejected` when the provider refuses to draw this, `bad_response` when there is no image otherwise */
function parseResponse(response: GatheredResponse): UpstreamImages {
  const { candidates, blocked, model, usage, fields } = takeApart(parseJson(response.text));
  if (blocked !== undefined) throw new UpstreamError('rejected', blockedText(blocked), { status: 400 });
  const images = candidates.flatMap(imagesOf);
  if (images.length === 0) {
    const isFiltered = candidates.some((one) => finishReason(one.finishReason, false) === 'content_filter');
    if (isFiltered) throw new UpstreamError('rejected', 'The provider filtered the image.', { status: 400 });
    throw badResponse('The provider sent no image.');
  }
  return { model, images, usage: googleUsage(usage, model, { images: images.length, queries: new Set() }), fields };
}

export const googleImages: ImageTranslation = {
  buildRequest,
  parseResponse,
  takesAspectRatio: () => true,
  dropped: ({ request }) => [...droppedForRatio(request), ...(typeof request.user === 'string' ? ['user'] : [])],
};
