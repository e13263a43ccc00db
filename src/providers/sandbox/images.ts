import type { ServerResponse } from 'node:http';
import { Worker } from 'node:worker_threads';
import type { ImageRequest } from '../../generated/types.ts';
import { validator } from '../../lib/schemas.ts';
import { Threads } from '../../lib/threads.ts';
import { parseJson } from '../wire/answer-json.ts';
import { type Detail, type ImageSize, imageSize, MAX_SIDE } from './draw-image.ts';
import type { DrawQuestion } from './draw-worker.ts';
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
  if (request.stream === true) {
    await streamImage(request, response, painter, { size, detail, signal });
    return;
  }
  const images = await painter.draw(request.prompt, request.n ?? 1, size, detail, signal);
  sendJson(response, 200, { created: CREATED, ...answer(request, images, size, detail) });
}

/** Drafts, then the picture. */
async function streamImage(
  request: ImageRequest,
  response: ServerResponse,
  painter: Painter,
  { size, detail, signal }: { readonly size: ImageSize; readonly detail: Detail; readonly signal: AbortSignal },
): Promise<void> {
  const send = (name: string, event: object): void =>
    sendEvent(response, JSON.stringify({ type: name, created_at: CREATED, ...event }), name);
  beginEvents(response);
  for (let step = 0; step < (request.partial_images ?? 0); step++) {
    const draft = await painter.draft(request.prompt, step, size, detail, signal);
    send('image_generation.partial_image', { ...formOf(size), b64_json: draft, partial_image_index: step });
  }
  const images = await painter.draw(request.prompt, 1, size, detail, signal);
  const { data, ...whole } = answer(request, images, size, detail);
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

function answer(request: ImageRequest, images: readonly string[], size: ImageSize, detail: Detail) {
  const input = textTokens(request.prompt);
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

/** Draws pictures next to the serving thread, which a few of them would stop for seconds. */
export interface Painter {
  /** Pictures of one request in base64. @throws ThreadsBusy; whatever ends the drawing once the caller has left */
  draw(prompt: string, count: number, size: ImageSize, detail: Detail, signal: AbortSignal): Promise<string[]>;
  /** A draft of the first picture. @param step 0 for the roughest */
  draft(prompt: string, step: number, size: ImageSize, detail: Detail, signal: AbortSignal): Promise<string>;
  close(): Promise<void>;
}

/** Requests that may wait for a picture of another. */
const MAX_WAITING = 32;
const LIMIT_MS = 20_000;
const RESOURCE_LIMITS = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 16 };

export function createPainter(): Painter {
  const threads = new Threads<DrawQuestion, string>({
    start: () => new Worker(new URL('./draw-worker.ts', import.meta.url), { resourceLimits: RESOURCE_LIMITS }),
    most: 1,
    maxWaiting: MAX_WAITING,
    limitMs: LIMIT_MS,
  });
  let requests = 0;
  const nextShare = (): string => {
    requests += 1;
    return String(requests);
  };
  return {
    async draw(prompt, count, size, detail, signal) {
      const share = nextShare(); // Picture by picture, so that a request for one does not wait for ten of another.
      const pictures: string[] = [];
      for (let number = 0; number < count; number += 1) {
        pictures.push(await threads.ask({ prompt, number, isDraft: false, size, detail }, { share, signal }));
      }
      return pictures;
    },
    draft: (prompt, step, size, detail, signal) =>
      threads.ask({ prompt, number: step, isDraft: true, size, detail }, { share: nextShare(), signal }),
    close: () => threads.close(),
  };
}
