import type { ChatMessage, ContentPart } from '../../generated/types.ts';
import { notTakenByProvider } from '../wire/upstream-error.ts';
import { type Block, textBlocks } from './block.ts';
import { fileBlock, imageBlock } from './media.ts';

/**
 * A message's content as blocks, in order; empty texts are left out.
 * @throws UpstreamError `rejected` for what the API does not take
 */
export function contentBlocks(content: ChatMessage['content']): Block[] {
  if (typeof content === 'string') return textBlocks(content);
  return (content ?? []).flatMap(partBlocks);
}

function partBlocks(part: ContentPart): Block[] {
  switch (part.type) {
    case 'text':
      return textBlocks(part.text ?? '', part.cache_control);
    case 'refusal':
      return textBlocks(part.refusal ?? '', part.cache_control);
    case 'image_url':
      return [imageBlock(part)];
    case 'file':
      return [fileBlock(part)];
    case 'input_audio':
    case 'video_url':
      throw notTakenByProvider('The provider takes no audio and no video.');
  }
}

/** Content of a system message. @throws UpstreamError `rejected` for anything but text */
export function systemBlocks(content: ChatMessage['content']): Block[] {
  const blocks = contentBlocks(content);
  if (blocks.some(({ type }) => type !== 'text')) {
    throw notTakenByProvider('The provider takes nothing but text in system messages.');
  }
  return blocks;
}
