import type { ContentPart } from '../../generated/types.ts';
import { notTakenByProvider } from '../wire/upstream-error.ts';
import { type Block, cacheControl } from './block.ts';

const IMAGE_TYPES: ReadonlySet<string> = new Set(['image/jpeg', 'image/png', 'image/gif', 'image/webp']);
const PDF = 'application/pdf';

interface Source {
  readonly type: 'base64' | 'url';
  readonly [field: string]: string;
}

/** A data URL's media type and base64; undefined when it has no base64. */
function base64Source(dataUrl: string): (Source & { readonly media_type: string; readonly data: string }) | undefined {
  const comma = dataUrl.indexOf(',');
  const [mediaType = '', ...parameters] = dataUrl.slice('data:'.length, comma).toLowerCase().split(';');
  if (comma === -1 || !parameters.includes('base64')) return undefined;
  return { type: 'base64', media_type: mediaType.trim(), data: dataUrl.slice(comma + 1) };
}

const isDataUrl = (text: string): boolean => /^data:/i.test(text);

/** An image, or a PDF that came as one. @throws UpstreamError `rejected` for a form or type that the API does not take */
export function imageBlock({ image_url: image, cache_control: cache }: ContentPart): Block {
  const url = image?.url ?? '';
  if (/^https:\/\//i.test(url)) return { type: 'image', source: { type: 'url', url }, ...cacheControl(cache) };
  const source = isDataUrl(url) ? base64Source(url) : undefined;
  if (source?.media_type === PDF) return { type: 'document', source, ...cacheControl(cache) };
  if (source === undefined || !IMAGE_TYPES.has(source.media_type)) {
    throw notTakenByProvider('The provider takes JPEG, PNG, GIF and WebP images, by https or as base64 data URLs.');
  }
  return { type: 'image', source, ...cacheControl(cache) };
}

/** A PDF, as a data URL or bare base64. @throws UpstreamError `rejected` for any other file */
export function fileBlock({ file, cache_control: cache }: ContentPart): Block {
  const data = file?.file_data ?? '';
  const source = isDataUrl(data) ? base64Source(data) : { type: 'base64' as const, media_type: PDF, data };
  if (source?.media_type !== PDF || source.data === '') {
    throw notTakenByProvider('The provider takes files as PDF data only.');
  }
  const title = file?.filename ?? '';
  return { type: 'document', source, ...(title === '' ? {} : { title }), ...cacheControl(cache) };
}
