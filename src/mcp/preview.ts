import type { Sharp } from 'sharp';

/** Clients cut a result at 1 MiB of JSON, in which these bytes take a third more. */
const PREVIEW_BYTES = 700_000;

/** Longest side of a preview in pixels, and how well it is drawn: the first that fits. */
const TRIES = [
  { side: 1024, quality: 85 },
  { side: 768, quality: 75 },
  { side: 512, quality: 60 },
  { side: 256, quality: 50 },
] as const;

/** A picture of more pixels is not decoded: it would take more memory than one caller may have. */
const MAX_PIXELS = 50_000_000;

export type ImageFormat = 'png' | 'jpeg' | 'webp' | 'gif';

const FORMATS: readonly ImageFormat[] = ['png', 'jpeg', 'webp', 'gif'];

export interface Picture {
  readonly bytes: Buffer;
  readonly format: ImageFormat;
}

/** Loaded with the first image: gateways that make none keep the memory. */
async function decoded(bytes: Buffer): Promise<Sharp> {
  const { default: sharp } = await import('sharp');
  // One thread for each image, and nothing kept between images: many callers share this process.
  sharp.concurrency(1);
  sharp.cache(false);
  return sharp(bytes, { limitInputPixels: MAX_PIXELS, failOn: 'error' });
}

/** What an image from a provider is. @throws Error for bytes that are no image of a known format */
export async function pictureOf(bytes: Buffer): Promise<Picture> {
  const { format: found } = await (await decoded(bytes)).metadata();
  const format = FORMATS.find((known) => known === found);
  if (format === undefined) throw new Error(`the image is ${found}`);
  return { bytes, format };
}

/**
 * The picture as an MCP client can show it: as it is where it is small, otherwise smaller.
 * @param shared number of previews in one result
 */
export async function previewOf(picture: Picture, shared: number): Promise<Picture> {
  const room = PREVIEW_BYTES / shared;
  if (picture.bytes.length <= room) return picture;
  let smaller = picture.bytes;
  for (const { side, quality } of TRIES) {
    smaller = await (await decoded(picture.bytes))
      .resize(side, side, { fit: 'inside', withoutEnlargement: true })
      .flatten({ background: '#ffffff' })
      .jpeg({ quality })
      .toBuffer();
    if (smaller.length <= room) break;
  }
  return { bytes: smaller, format: 'jpeg' };
}

/** The same picture in another format. */
export async function inFormat(picture: Picture, format: ImageFormat): Promise<Picture> {
  if (picture.format === format) return picture;
  return { bytes: await (await decoded(picture.bytes)).toFormat(format).toBuffer(), format };
}
