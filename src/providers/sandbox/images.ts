import type { ServerResponse } from 'node:http';
import type { ImageRequest } from '../../generated/types.ts';
import { validator } from '../../lib/schemas.ts';
import { parseJson } from '../wire/fields.ts';
import { type Detail, type ImageSize, imageSize, MAX_SIDE, type Painter, type Subject } from './draw-image.ts';
import { CREATED, detailOf, textTokens } from './models.ts';
import { beginEvents, faultIn, sendError, sendEvent, sendFault, sendJson } from './wire.ts';

const validateImageRequest = validator('ImageRequest');

const EMPTY = { created: CREATED, data: [] };

/** `POST /v1/images/generations`. Stops early when `signal` says that the caller left. */
export async function generateImages(
  body: string,
  response: ServerResponse,
  painter: Painter,
  signal: AbortSignal,
): Promise<void> {
  const request = parseJson(body);
  if (!validateImageRequest(request)) {
    sendError(response, 400, 'invalid_request', 'The request is not an image request.');
    return;
  }
  const detail = detailOf(request.model ?? '');
  if (detail === undefined) {
    sendError(response, 404, 'model_not_found', `The sandbox has no image model ${request.model}.`);
    return;
  }
  const fault = faultIn(request.prompt);
  if (fault !== undefined) {
    sendFault(response, fault, { stream: false, empty: EMPTY });
    return;
  }
  const size = imageSize(request.size, request.aspect_ratio);
  const refusal = refusalOf(request);
  if (refusal !== undefined || size === undefined) {
    sendError(response, 400, 'invalid_request', refusal ?? `The sandbox draws sides of 16 to ${MAX_SIDE} pixels.`);
    return;
  }
  const subject: Subject = { prompt: request.prompt, size, detail };
  if (request.stream === true) {
    await streamImage(subject, request.partial_images ?? 0, response, painter, signal);
    return;
  }
  const images = await painter.draw(subject, request.n ?? 1, signal);
  sendJson(response, 200, { created: CREATED, ...answer(images, subject) });
}

/** Drafts, then the picture. */
async function streamImage(
  subject: Subject,
  drafts: number,
  response: ServerResponse,
  painter: Painter,
  signal: AbortSignal,
): Promise<void> {
  const send = (name: string, event: object): void =>
    sendEvent(response, JSON.stringify({ type: name, created_at: CREATED, ...event }), name);
  beginEvents(response);
  for (let step = 0; step < drafts; step++) {
    const draft = await painter.draft(subject, step, signal);
    send('image_generation.partial_image', { ...formOf(subject.size), b64_json: draft, partial_image_index: step });
  }
  const images = await painter.draw(subject, 1, signal);
  const { data, ...whole } = answer(images, subject);
  send('image_generation.completed', { ...whole, ...data[0] });
  response.end();
}

/** Why the sandbox cannot do what is asked. */
function refusalOf({ response_format: form, output_format: file, stream, n }: ImageRequest): string | undefined {
  if (form === 'url') return 'The sandbox keeps no images, so it gives no URLs: ask for b64_json.';
  if ((file ?? 'png') !== 'png') return 'The sandbox draws PNG only.';
  if (stream === true && (n ?? 1) > 1) return 'The sandbox streams one image at a time.';
  return undefined;
}

/** Pixels of a picture for each of its tokens. */
const PIXELS_PER_TOKEN: Readonly<Record<Detail, number>> = { plain: 1024, fine: 256 };

/** The tokens that one picture counts as. */
export const imageTokens = ({ width, height }: ImageSize, detail: Detail): number =>
  Math.ceil((width * height) / PIXELS_PER_TOKEN[detail]);

const formOf = ({ width, height }: ImageSize): object => ({ output_format: 'png', size: `${width}x${height}` });

function answer(images: readonly string[], { prompt, size, detail }: Subject) {
  const input = textTokens(prompt);
  const output = images.length * imageTokens(size, detail);
  return {
    ...formOf(size),
    data: images.map((image) => ({ b64_json: image })),
    usage: {
      input_tokens: input,
      input_tokens_details: { text_tokens: input, image_tokens: 0 },
      output_tokens: output,
      total_tokens: input + output,
    },
  };
}
