import { notTakenByProvider } from '../wire/upstream-error.ts';
import { fetchesLinks } from './model.ts';

/** A part of a turn, as Google writes it. */
export type Part = Readonly<Record<string, unknown>>;

const DATA_URL = /^data:([^;,]+)(?:;[^;,]*)*;base64,/i;

/** By the end of a file's name. */
const TYPES: ReadonlyMap<string, string> = new Map([
  ['png', 'image/png'],
  ['jpg', 'image/jpeg'],
  ['jpeg', 'image/jpeg'],
  ['webp', 'image/webp'],
  ['gif', 'image/gif'],
  ['bmp', 'image/bmp'],
  ['heic', 'image/heic'],
  ['heif', 'image/heif'],
  ['pdf', 'application/pdf'],
  ['json', 'application/json'],
  ['txt', 'text/plain'],
  ['csv', 'text/csv'],
  ['html', 'text/html'],
  ['xml', 'text/xml'],
  ['mp4', 'video/mp4'],
  ['mpeg', 'video/mpeg'],
  ['mov', 'video/quicktime'],
  ['webm', 'video/webm'],
  ['mp3', 'audio/mp3'],
  ['wav', 'audio/wav'],
]);

const typeByName = (name: string): string | undefined =>
  TYPES.get(/\.([a-z0-9]+)$/i.exec(name)?.[1]?.toLowerCase() ?? '');

/**
 * An image that a message names; an https address that does not tell its type is stated to be one: as a film it would be charged
 * at a multiple. @throws UpstreamError as `fromUrl`
 */
export const imageFromUrl = (url: string, externalId: string): Part => fromUrl(url, externalId, 'image/jpeg');

/** Base64 of a file whose type is stated, or told by its name; a file that says neither is taken for a PDF. */
export const inlineFile = (data: string, name: string | null | undefined): Part => ({
  inlineData: { mimeType: typeByName(name ?? '') ?? 'application/pdf', data },
});

export const inlineAudio = (data: string, format: string | undefined): Part => ({
  inlineData: { mimeType: `audio/${format ?? 'wav'}`, data },
});

/** A data URL as inline data; undefined for any other text. @throws UpstreamError for a data URL that is not base64 */
export function fromDataUrl(url: string): Part | undefined {
  if (!/^data:/i.test(url)) return undefined;
  const [head, mimeType] = DATA_URL.exec(url) ?? [];
  if (head === undefined || mimeType === undefined) {
    throw notTakenByProvider('This provider takes data URLs in base64 only, with a media type.');
  }
  return { inlineData: { mimeType, data: url.slice(head.length) } };
}

/**
 * What a URL names. The gateway fetches nothing: an https address goes to the provider, which fetches public ones (documented
 * for `fileData.fileUri`; its type is optional there, and is stated where the name tells it).
 * @param unnamed what it is where its name does not tell; undefined: Google finds out
 * @throws UpstreamError for any other address, and on models that fetch none
 */
export function fromUrl(url: string, externalId: string, unnamed?: string): Part {
  const inline = fromDataUrl(url);
  if (inline !== undefined) return inline;
  if (!URL.canParse(url) || new URL(url).protocol !== 'https:') {
    throw notTakenByProvider('This provider takes data URLs and https addresses only.');
  }
  if (!fetchesLinks(externalId)) throw notTakenByProvider('This model takes images and files as data URLs only.');
  const mimeType = typeByName(new URL(url).pathname) ?? unnamed;
  return { fileData: mimeType === undefined ? { fileUri: url } : { mimeType, fileUri: url } };
}
