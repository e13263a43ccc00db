import type { ChatMessage, ReasoningDetail } from '../../generated/types.ts';
import type { Block } from './block.ts';

/** `format` of the details that are ours to read. */
const FORMAT = 'anthropic';

/** Thoughts, or a piece of them, as a detail. */
export const textDetail = (index: number, piece: { readonly text?: string; readonly signature?: string }) =>
  ({ type: 'reasoning.text', ...piece, format: FORMAT, index }) satisfies ReasoningDetail;

/** Thoughts that only the provider can read. */
export const encryptedDetail = (index: number, data: string) =>
  ({ type: 'reasoning.encrypted', data, format: FORMAT, index }) satisfies ReasoningDetail;

/**
 * The thinking blocks of an earlier answer, as the provider gave them, in order. Pieces of one index that a client did not put
 * together are. What has no signature, and what another provider thought, is left out: the API would refuse it.
 */
export function thinkingBlocks(details: ChatMessage['reasoning_details']): Block[] {
  const own = (details ?? []).filter(({ format }) => format?.startsWith(FORMAT) === true);
  return joinPieces(own).flatMap(({ type, text, signature, data }): Block[] => {
    if (type === 'reasoning.encrypted') return data == null ? [] : [{ type: 'redacted_thinking', data }];
    if (type !== 'reasoning.text' || signature == null || signature === '') return [];
    return [{ type: 'thinking', thinking: text ?? '', signature }];
  });
}

/** Consecutive texts of one index become one, until a signature closes it. */
function joinPieces(details: readonly ReasoningDetail[]): ReasoningDetail[] {
  const joined: ReasoningDetail[] = [];
  let texts: string[] = [];
  for (const detail of details) {
    const last = joined.at(-1);
    if (last !== undefined && continues(last, detail)) {
      texts.push(detail.text ?? '');
      if (detail.signature != null) joined[joined.length - 1] = { ...detail, text: texts.join('') };
    } else {
      texts = [detail.text ?? ''];
      joined.push(detail);
    }
  }
  return joined;
}

const continues = (last: ReasoningDetail, next: ReasoningDetail): boolean =>
  next.type === 'reasoning.text' &&
  last.type === 'reasoning.text' &&
  last.signature == null &&
  next.index !== undefined &&
  last.index === next.index;
