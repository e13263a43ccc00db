import { accessSync, constants, realpathSync } from 'node:fs';
import { open } from 'node:fs/promises';
import path from 'node:path';
import { ConfigError } from '../config/config-value.ts';
import { invalidRequest } from '../domain/errors.ts';
import { makeFolders } from '../folders.ts';
import { entryOf } from '../lib/text.ts';
import type { ImageFormat, Picture } from './preview.ts';

const FORMAT_OF_EXTENSION: Readonly<Record<string, ImageFormat>> = {
  '.png': 'png',
  '.jpg': 'jpeg',
  '.jpeg': 'jpeg',
  '.webp': 'webp',
};

/** Letters and digits first, so that nothing is hidden and nothing is an option; no separators of any system. */
const FILE_NAME = /^[\p{L}\p{N}_][\p{L}\p{N}_ .()+-]{0,99}$/u;

/** What file systems take is 255, a suffix included. */
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
