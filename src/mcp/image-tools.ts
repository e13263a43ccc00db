import type { CallToolResult } from '@modelcontextprotocol/server';
import imageSchema from '../../schemas/mcp/generate-image.json' with { type: 'json' };
import bananaSchema from '../../schemas/mcp/generate-nano-banana.json' with { type: 'json' };
import type { CallContext } from '../core/authorize.ts';
import { findImageModel } from '../core/auto.ts';
import type { CoreContext } from '../core/core-context.ts';
import { generateImage } from '../core/generate-image.ts';
import { ApiError } from '../domain/errors.ts';
import type { ImageRequest } from '../generated/types.ts';
import { validator } from '../lib/schemas.ts';
import { sharpFault } from '../lib/sharp.ts';
import type { ParsedJson } from '../net/event-stream.ts';
import {
  defaultFilename,
  NotDecoded,
  type Picture,
  PictureDecoder,
  pictureOf,
  picturesUnavailable,
  type ReadPicture,
  saveUpload,
  type UploadName,
  uploadName,
  type Viewer,
} from './preview.ts';
import {
  defineTool,
  field,
  type McpTool,
  readPictures,
  type ToolCaller,
  type ToolFacts,
  text,
  usageMeta,
} from './tool.ts';

export const GENERATE_IMAGE: ToolFacts = {
  name: 'generate-image',
  title: 'Generate images',
  schema: imageSchema,
  isReadOnly: false,
};
export const GENERATE_NANO_BANANA: ToolFacts = {
  name: 'generate-nano-banana',
  title: 'Generate an image',
  schema: bananaSchema,
  isReadOnly: false,
};

export interface ImageToolOptions {
  /** Model of `generate-nano-banana`; undefined: the cheapest permitted one that takes an aspect ratio. */
  readonly nanoBananaModel: string | undefined;
  /** Absolute; undefined: no file is written. */
  readonly uploadDir: string | undefined;
}

/** One generated image: the picture, or an address where the provider keeps it. */
type Generated = { readonly picture: ReadPicture } | { readonly url: string };

/** `generate-image` and `generate-nano-banana`: the same call as `POST /v1/images/generations`, answered with previews. */
export function imageTools(app: CoreContext, options: ImageToolOptions): readonly McpTool[] {
  const decoder = new PictureDecoder();
  return [generateImageTool(app, decoder), nanoBananaTool(app, options, decoder)];
}

const viewerOf = ({ principal, context, borrow }: ToolCaller): Viewer => ({
  organizationId: principal.organizationId,
  keyId: principal.keyId,
  signal: context.signal,
  borrow,
});

const generateImageTool = (app: CoreContext, decoder: PictureDecoder): McpTool =>
  defineTool(
    GENERATE_IMAGE,
    validator('GenerateImageArguments'),
    async (caller, { prompt, model, size = '1024x1024', n = 1 }): Promise<CallToolResult> => {
      const request = { prompt, ...(model === undefined ? {} : { model }), size, n };
      const { images, meta } = await generate(app, caller, request);
      return { content: await contentOf(images, decoder, viewerOf(caller)), _meta: meta };
    },
  );

function nanoBananaTool(app: CoreContext, options: ImageToolOptions, decoder: PictureDecoder): McpTool {
  const { nanoBananaModel, uploadDir } = options;
  const { clock } = app;
  return defineTool(
    GENERATE_NANO_BANANA,
    validator('NanoBananaArguments'),
    async (caller, { prompt, filename, aspect_ratio: ratio }): Promise<CallToolResult> => {
      const name = uploadName(filename ?? defaultFilename(clock.now()));
      const { principal, context } = caller;
      const model = nanoBananaModel ?? (await findImageModel(app, { principal, clientIp: context.clientIp }));
      const request = { prompt, model, ...(ratio === undefined ? {} : { aspect_ratio: ratio }) };
      const { images, meta } = await generate(app, caller, request);
      const [first] = images;
      const viewer = viewerOf(caller);
      const content = await contentOf(images.slice(0, 1), decoder, viewer);
      if (first !== undefined && 'picture' in first) {
        const inFormat = () => decoder.inFormat(first.picture, name.format, viewer);
        content.push(...(await saved(uploadDir, app, context, name, inFormat)));
      }
      return { content, _meta: meta };
    },
  );
}

/** Note of a result on the saved file. A file that cannot be written does not take away the image, which is paid for. */
async function saved(
  uploadDir: string | undefined,
  { telemetry }: CoreContext,
  { requestId, signal }: CallContext,
  name: UploadName,
  inFormat: () => Promise<Picture>,
): Promise<CallToolResult['content']> {
  if (uploadDir === undefined) return [];
  try {
    return [text(`Saved as ${await saveUpload(uploadDir, name, await inFormat())}.`)];
  } catch (error) {
    if (signal.aborted) return [];
    if (error instanceof NotDecoded) {
      return [text(`The image was not saved as ${name.format}. ${error.message}`)];
    }
    if (error instanceof ApiError) return [text(error.message)];
    telemetry.failure(requestId, error);
    return [text('The gateway could not save the image.')];
  }
}

async function generate(
  app: CoreContext,
  { principal, context, takeRate }: ToolCaller,
  request: ImageRequest,
): Promise<{ images: Generated[]; meta: CallToolResult['_meta'] }> {
  const fault = sharpFault();
  if (fault !== undefined) throw picturesUnavailable(fault);
  takeRate('images');
  const outcome = await generateImage(app, principal, context, request);
  if (outcome.kind === 'stream') throw new Error('images that were not to be streamed were streamed');
  const { signal } = context;
  const { json, longTexts } = await readPictures(outcome.answer, (large) =>
    app.answers.parse(large, { share: principal.organizationId, signal }),
  );
  const data = field(json, 'data');
  const { usage, metadata } = outcome.answer.ours;
  return {
    images: await generatedIn(Array.isArray(data) ? data.slice(0, request.n ?? 1) : [], longTexts),
    meta: { 'portcullis/usage': usageMeta(usage), 'portcullis/metadata': metadata },
  };
}

const unreadable = (cause?: unknown): ApiError =>
  new ApiError(502, 'upstream_error', 'The provider sent an image that cannot be read.', { cause });

/** One by one: each header is read in one of the threads that all callers share. @throws ApiError 502 */
async function generatedIn(items: readonly unknown[], longTexts: ParsedJson['longTexts']): Promise<Generated[]> {
  const images: Generated[] = [];
  for (const item of items) images.push(await generatedOf(item, longTexts));
  return images;
}

/** @throws ApiError 502 */
async function generatedOf(item: unknown, longTexts: ParsedJson['longTexts']): Promise<Generated> {
  const whole = (name: string): unknown => {
    const value = field(item, name);
    const long = typeof value === 'string' ? longTexts.get(value) : undefined;
    return long === undefined ? value : Buffer.from(long).toString('latin1');
  };
  const [base64, url] = [whole('b64_json'), whole('url')];
  if (typeof url === 'string' && !url.startsWith('data:')) return { url };
  const encoded = typeof url === 'string' ? url.slice(url.indexOf(',') + 1) : base64;
  if (typeof encoded !== 'string') throw unreadable();
  try {
    return { picture: await pictureOf(Buffer.from(encoded, 'base64')) };
  } catch (error) {
    throw error instanceof ApiError ? error : unreadable(error);
  }
}

/** @throws ApiError 502 for a picture that is damaged */
async function contentOf(
  images: readonly Generated[],
  decoder: PictureDecoder,
  viewer: Viewer,
): Promise<CallToolResult['content']> {
  const content: CallToolResult['content'] = [];
  for (const image of images) {
    if ('url' in image) content.push(text(`The provider keeps the image at ${image.url}`));
    else content.push(await previewBlock(image.picture, images.length, decoder, viewer));
  }
  return content;
}

async function previewBlock(
  picture: ReadPicture,
  shared: number,
  decoder: PictureDecoder,
  viewer: Viewer,
): Promise<CallToolResult['content'][number]> {
  try {
    const { bytes, format } = await decoder.preview(picture, shared, viewer);
    return { type: 'image', data: bytes.toString('base64'), mimeType: `image/${format}` };
  } catch (error) {
    if (error instanceof NotDecoded) return text(`There is no preview. ${error.message}`);
    throw viewer.signal.aborted ? error : unreadable(error);
  }
}
