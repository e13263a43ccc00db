import { accessSync, constants, realpathSync } from 'node:fs';
import { open } from 'node:fs/promises';
import path from 'node:path';
import { ConfigError } from '../config/variables.ts';
import { ApiError, invalidRequest } from '../domain/errors.ts';
import { Turns } from '../domain/turns.ts';
import { makeFolders } from '../lib/files.ts';
import { loadSharp, type Metadata, type Sharp, SharpUnavailable } from '../lib/sharp.ts';
import { entryOf } from '../lib/text.ts';

/** Clients cut a result at 1 MiB of JSON, in which these bytes take a third more. */
const PREVIEW_BYTES = 700_000;

/** Longest side of a preview in pixels, and how well it is drawn: the first that fits. */
const TRIES = [
  { side: 1024, quality: 85 },
  { side: 768, quality: 75 },
  { side: 512, quality: 60 },
  { side: 256, quality: 50 },
] as const;

/** A picture of more pixels is not decoded at all. */
const MAX_PIXELS = 50_000_000;

/** Seconds for one step of the work on a picture. */
const LIMIT_SECONDS = 10;

/**
 * Bytes of memory that a pixel takes at most, with 8 bits for each colour, measured with sharp 0.35.5: a preview of what is decoded
 * line by line, of what is decoded as a whole, and the same picture in another format.
 */
const BYTES_A_PIXEL = { line: 2, whole: 6, converted: 12, webp: 16 } as const;

type ImageFormat = 'png' | 'jpeg' | 'webp' | 'gif';

const FORMATS: readonly ImageFormat[] = ['png', 'jpeg', 'webp', 'gif'];

export interface Picture {
  readonly bytes: Buffer;
  readonly format: ImageFormat;
}

/** A picture whose header was read. */
export interface ReadPicture extends Picture {
  readonly width: number;
  readonly height: number;
  /** It is decoded as a whole: lines come in no order. */
  readonly isWhole: boolean;
  readonly bytesAColour: 1 | 2;
}

/** On whose behalf a picture is decoded. */
export interface Viewer {
  readonly organizationId: string;
  readonly keyId: string;
  /** Aborted when the client leaves. */
  readonly signal: AbortSignal;
  /** Takes so many bytes of what requests may hold. @returns gives them back @throws ApiError 503 */
  borrow(bytes: number): () => void;
}

/** The answer where the gateway, not the provider, is why a picture cannot be shown. */
export const picturesUnavailable = (fault: string, cause?: unknown): ApiError =>
  new ApiError(503, 'pictures_unavailable', `This gateway cannot show pictures: ${fault}. Tell its operator.`, {
    cause,
  });

async function opened(bytes: Buffer): Promise<Sharp> {
  try {
    const sharp = await loadSharp();
    return sharp(bytes, { limitInputPixels: MAX_PIXELS, failOn: 'error' }).timeout({ seconds: LIMIT_SECONDS });
  } catch (error) {
    throw error instanceof SharpUnavailable ? picturesUnavailable(error.message, error) : error;
  }
}

/**
 * Reads the format of a provider's image from its header.
 * @throws Error for bytes that are not an image of a known format
 */
export async function pictureOf(bytes: Buffer): Promise<ReadPicture> {
  const { format: found, width, height, ...more } = await (await opened(bytes)).metadata();
  const format = FORMATS.find((known) => known === found);
  if (format === undefined) throw new Error(`the image is ${found}`);
  return { bytes, format, width, height, isWhole: isDecodedWhole(format, more), bytesAColour: bytesAColour(more) };
}

const isDecodedWhole = (format: ImageFormat, { isProgressive }: Pick<Metadata, 'isProgressive'>): boolean =>
  format === 'gif' || isProgressive === true;

const bytesAColour = ({ depth }: Pick<Metadata, 'depth'>): 1 | 2 => (depth === 'uchar' ? 1 : 2);

/** The picture is not decoded, though it can be. The message says why. */
export class NotDecoded extends Error {
  override readonly name = 'NotDecoded';
}

/**
 * Decodes pictures, one at a time of all callers, in turn by organization and key: each takes one of the threads that look up names,
 * read and write files and hash passwords, and so many bytes of `MAX_BUFFERED_BYTES` as its pixels need.
 */
export class PictureDecoder {
  readonly #turns = new Turns({
    what: 'images',
    maxWaiting: 64,
    maxWaitingEach: 16,
    maxWaitingPart: 8,
    maxWaitMs: 30_000,
  });

  /**
   * The picture as an MCP client can show it: as it is where it is small, otherwise smaller.
   * @param shared number of previews in one result @throws NotDecoded; Error for a picture that is damaged
   */
  async preview(picture: ReadPicture, shared: number, viewer: Viewer): Promise<Picture> {
    const room = PREVIEW_BYTES / shared;
    if (picture.bytes.length <= room) return picture;
    const perPixel = picture.isWhole ? BYTES_A_PIXEL.whole : BYTES_A_PIXEL.line;
    return this.#decode(picture, perPixel, viewer, async (source) => {
      const [{ side: most }] = TRIES;
      const decoded = await source.resize(most, most, INSIDE).flatten(WHITE).png({ compressionLevel: 1 }).toBuffer();
      let smaller = decoded;
      for (const { side, quality } of TRIES) {
        smaller = await (await opened(decoded)).resize(side, side, INSIDE).jpeg({ quality }).toBuffer();
        if (smaller.length <= room) break;
      }
      return { bytes: smaller, format: 'jpeg' };
    });
  }

  /** Converts a picture to another format. @throws NotDecoded; Error for a picture that is damaged */
  async inFormat(picture: ReadPicture, format: ImageFormat, viewer: Viewer): Promise<Picture> {
    if (picture.format === format) return picture;
    const perPixel = format === 'webp' ? BYTES_A_PIXEL.webp : BYTES_A_PIXEL.converted;
    return this.#decode(picture, perPixel, viewer, async (source) => ({
      bytes: await source.toFormat(format).toBuffer(),
      format,
    }));
  }

  async #decode(
    { bytes, width, height, bytesAColour }: ReadPicture,
    perPixel: number,
    { organizationId, keyId, signal, borrow }: Viewer,
    work: (source: Sharp) => Promise<Picture>,
  ): Promise<Picture> {
    const inTurn = async (): Promise<Picture> => {
      signal.throwIfAborted();
      const giveBack = borrow(width * height * perPixel * bytesAColour);
      try {
        return await work(await opened(bytes));
      } finally {
        giveBack();
      }
    };
    try {
      return await this.#turns.take(organizationId, inTurn, keyId);
    } catch (error) {
      const image = `an image of ${width} × ${height} pixels`;
      if (isLate(error)) throw new NotDecoded(`It takes too long to decode ${image}.`, { cause: error });
      if (!(error instanceof ApiError)) throw error;
      throw new NotDecoded(`The gateway has no room to decode ${image} now.`, { cause: error });
    }
  }
}

/** Sharp has ended the work at its limit of time. */
const isLate = (error: unknown): boolean => error instanceof Error && error.message.startsWith('timeout:');

const INSIDE = { fit: 'inside', withoutEnlargement: true } as const;
const WHITE = { background: '#ffffff' } as const;

const FORMAT_OF_EXTENSION: Readonly<Record<string, ImageFormat>> = {
  '.png': 'png',
  '.jpg': 'jpeg',
  '.jpeg': 'jpeg',
  '.webp': 'webp',
};

/** Letters and digits first, so that nothing is hidden and nothing is an option; no separators of any system. */
const FILE_NAME = /^[\p{L}\p{N}_][\p{L}\p{N}_ .()+-]{0,99}$/u;

/** File systems take 255 bytes, a suffix included. */
const MAX_BYTES = 200;

/** Files of one name. */
const MAX_SUFFIX = 999;

/** Makes the folder where it is missing. @returns its real path @throws ConfigError where nothing can be written there */
export function prepareUploads(folder: string): string {
  try {
    makeFolders(folder);
    accessSync(folder, constants.W_OK | constants.X_OK);
    return realpathSync(folder);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new ConfigError(`UPLOAD_DIR: cannot write to ${folder}: ${reason}`);
  }
}

/** A file's name as it was asked for, taken apart. */
export interface UploadName {
  readonly stem: string;
  /** With its dot. */
  readonly extension: string;
  readonly format: ImageFormat;
}

/** @throws ApiError 400 for a name that is not a plain file name with an image's extension */
export function uploadName(filename: string): UploadName {
  const extension = path.posix.extname(filename);
  const format = entryOf(FORMAT_OF_EXTENSION, extension.toLowerCase());
  const isTooLong = Buffer.byteLength(filename) > MAX_BYTES;
  if (!FILE_NAME.test(filename) || isTooLong || filename.includes('..') || format === undefined) {
    throw invalidRequest(
      '/filename must be a file name without a path that ends in .png, .jpg, .jpeg or .webp.',
      '/filename',
    );
  }
  return { stem: filename.slice(0, -extension.length), extension, format };
}

/** The name of a file for which none was asked. @param now epoch milliseconds */
export const defaultFilename = (now: number): string => `nano-banana-${now}.png`;

/** Whether the file was there before. */
const existed = (error: unknown): boolean => error instanceof Error && 'code' in error && error.code === 'EEXIST';

/**
 * Saves a picture, which is in the format of its name, under a name that is free: `cat.png`, `cat-1.png`, … Nothing is overwritten,
 * no link is followed. @param folder absolute @returns the name of the file
 */
export async function saveUpload(
  folder: string,
  { stem, extension }: UploadName,
  { bytes }: Pick<Picture, 'bytes'>,
): Promise<string> {
  for (let suffix = 0; suffix <= MAX_SUFFIX; suffix += 1) {
    const name = suffix === 0 ? `${stem}${extension}` : `${stem}-${suffix}${extension}`;
    try {
      const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
      const file = await open(path.join(folder, name), flags, 0o640);
      try {
        await file.writeFile(bytes);
      } finally {
        await file.close();
      }
      return name;
    } catch (error) {
      if (!existed(error)) throw error;
    }
  }
  throw invalidRequest(
    `There are already ${MAX_SUFFIX + 1} files named ${stem}${extension}: choose another filename.`,
    '/filename',
  );
}
