import type { FinishReason } from '../../generated/types.ts';
import { badResponse } from '../wire/upstream-error.ts';

const FINISH_REASONS: ReadonlyMap<string, FinishReason> = new Map([
  ['MAX_TOKENS', 'length'],
  ['SAFETY', 'content_filter'],
  ['RECITATION', 'content_filter'],
  ['BLOCKLIST', 'content_filter'],
  ['PROHIBITED_CONTENT', 'content_filter'],
  ['SPII', 'content_filter'],
  ['IMAGE_SAFETY', 'content_filter'],
  ['IMAGE_PROHIBITED_CONTENT', 'content_filter'],
  ['IMAGE_RECITATION', 'content_filter'],
  ['MODEL_ARMOR', 'content_filter'],
]);

/** The model wrote something that its own provider could not read: another attempt may do better. */
const BROKEN: ReadonlySet<string> = new Set([
  'MALFORMED_FUNCTION_CALL',
  'MALFORMED_RESPONSE',
  'UNEXPECTED_TOOL_CALL',
  'MISSING_THOUGHT_SIGNATURE',
]);

/**
 * Why a candidate ended; undefined while it has not. A normal end after tool calls is `tool_calls`; whatever is not known is a
 * normal end.
 * @throws UpstreamError `bad_response` for an answer that broke
 */
export function finishReason(reported: unknown, calledTools: boolean): FinishReason | undefined {
  if (typeof reported !== 'string' || reported === '' || reported === 'FINISH_REASON_UNSPECIFIED') return undefined;
  if (BROKEN.has(reported)) throw badResponse('The provider could not read what its model wrote.');
  return FINISH_REASONS.get(reported) ?? (calledTools ? 'tool_calls' : 'stop');
}

/** Why the prompt was blocked, in the provider's word; undefined when it was not. */
export function blockReason(feedback: unknown): string | undefined {
  if (typeof feedback !== 'object' || feedback === null || !('blockReason' in feedback)) return undefined;
  const { blockReason: reason } = feedback;
  if (typeof reason !== 'string' || reason === '' || reason === 'BLOCK_REASON_UNSPECIFIED') return undefined;
  return /^[A-Z_]{1,64}$/.test(reason) ? reason : 'OTHER';
}

/** The error for a blocked prompt, for which Google gives no candidate. */
export const blockedText = (reason: string): string => `The provider blocked the prompt: ${reason}.`;
