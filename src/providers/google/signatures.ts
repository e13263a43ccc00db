import type { ReasoningDetail } from '../../generated/types.ts';
import { isRecord, record } from '../wire/json.ts';

/**
 * Where Gemini's thought signatures stand in OpenAI's form. Those of function calls and images stand on the tool call or
 * image itself, in `extra_content.google.thought_signature`; those of text in `reasoning_details`, one entry each.
 */

/** Google documents this text in the place of a signature that got lost: the call is then not refused for lack of one. */
export const LOST_SIGNATURE = 'skip_thought_signature_validator';

const FORMAT = 'google';
const TYPE = 'reasoning.encrypted';

/** The signature on a tool call or an image that came back; undefined when the caller's SDK dropped it. */
export function signatureOn(holder: unknown): string | undefined {
  const signature = record(record(record(holder).extra_content).google).thought_signature;
  return typeof signature === 'string' && signature !== '' ? signature : undefined;
}

/** The field that holds a signature, to be spread into a tool call or an image; nothing without one. */
export const signatureField = (
  signature: string | undefined,
): { extra_content?: { google: { thought_signature: string } } } =>
  signature === undefined ? {} : { extra_content: { google: { thought_signature: signature } } };

/** Signatures on text as `reasoning_details`; `first` is how many the message had before. */
export const toReasoningDetails = (signatures: readonly string[], first: number): ReasoningDetail[] =>
  signatures.map((data, position) => ({ type: TYPE, data, format: FORMAT, index: first + position }));

/** The signatures on text of an earlier answer, in their order; other providers' details are none of ours. */
export function textSignatures(details: readonly ReasoningDetail[] | null | undefined): string[] {
  const signatures: string[] = [];
  for (const detail of details ?? []) {
    if (!isRecord(detail) || detail.type !== TYPE || detail.format !== FORMAT) continue;
    if (typeof detail.data === 'string' && detail.data !== '') signatures.push(detail.data);
  }
  return signatures;
}
