import type { ChatMessage, ContentPart } from '../../generated/types.ts';
import { notTakenByProvider } from '../wire/upstream-error.ts';
import { fromDataUrl, fromUrl, imageFromUrl, inlineAudio, inlineFile, type Part } from './media.ts';

/**
 * What a message says, as Google's parts. Empty text is left out: Google refuses it.
 * @throws UpstreamError for what the provider does not take
 */
export function toParts(content: ChatMessage['content'], externalId: string): Part[] {
  if (content === null || content === undefined) return [];
  if (typeof content === 'string') return textParts(content);
  return content.flatMap((part) => toPart(part, externalId));
}

const textParts = (text: string): Part[] => (text === '' ? [] : [{ text }]);

function toPart(part: ContentPart, externalId: string): Part[] {
  switch (part.type) {
    case 'text':
      return textParts(part.text ?? '');
    case 'refusal':
      return textParts(part.refusal ?? '');
    case 'image_url':
      return [imageFromUrl(part.image_url?.url ?? '', externalId)];
    case 'video_url':
      return [fromUrl(part.video_url?.url ?? '', externalId)];
    case 'input_audio':
      return [inlineAudio(part.input_audio?.data ?? '', part.input_audio?.format)];
    case 'file':
      return [filePart(part.file ?? {}, externalId)];
  }
}

/** A file's content, or where it is: an https address, also that of a file uploaded to Google. */
function filePart(file: NonNullable<ContentPart['file']>, externalId: string): Part {
  const { file_data: data, file_id: id, filename } = file;
  if (typeof data === 'string') {
    if (/^https?:/i.test(data)) return fromUrl(data, externalId);
    return fromDataUrl(data) ?? inlineFile(data, filename);
  }
  if (typeof id === 'string') return fromUrl(id, externalId);
  throw notTakenByProvider('This provider takes files by content or address only.');
}
