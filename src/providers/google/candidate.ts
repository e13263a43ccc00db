import { hash } from 'node:crypto';
import type { CompletionImage, ReasoningDetail, ToolCall } from '../../generated/types.ts';
import { isRecord, record } from '../wire/json.ts';
import { badResponse } from '../wire/upstream-error.ts';
import { signatureField, toReasoningDetails } from './signatures.ts';
import type { Shown } from './usage.ts';

type Fields = Readonly<Record<string, unknown>>;

/** A candidate, or a piece of one, read. */
export interface Said {
  readonly text: string;
  readonly thoughts: string;
  /** Of text, in their order. */
  readonly signatures: readonly string[];
  readonly images: readonly CompletionImage[];
  readonly calls: readonly ToolCall[];
}

/** Makes the id of a tool call that came without one: never the same twice in a conversation. */
export type NewCallId = () => string;

const malformed = () => badResponse('The provider sent a malformed answer.');

const signatureOf = (part: Fields): string | undefined =>
  typeof part.thoughtSignature === 'string' && part.thoughtSignature !== '' ? part.thoughtSignature : undefined;

function toToolCall(part: Fields, call: Fields, newCallId: NewCallId): ToolCall {
  const { id, name, args = {} } = call;
  if (typeof name !== 'string' || !isRecord(args)) throw malformed();
  return {
    id: typeof id === 'string' && id !== '' ? id : newCallId(),
    type: 'function',
    function: { name, arguments: JSON.stringify(args) },
    ...signatureField(signatureOf(part)),
  };
}

function toImage(part: Fields): CompletionImage | undefined {
  const { mimeType, data } = record(part.inlineData);
  if (typeof data !== 'string' || typeof mimeType !== 'string' || !mimeType.startsWith('image/')) return undefined;
  return {
    type: 'image_url',
    image_url: { url: `data:${mimeType};base64,${data}` },
    ...signatureField(signatureOf(part)),
  };
}

function partsOf(candidate: Fields): Fields[] {
  const { content } = candidate;
  if (content === undefined || content === null) return [];
  const parts = record(content).parts ?? [];
  if (!isRecord(content) || !Array.isArray(parts) || !parts.every(isRecord)) throw malformed();
  return parts;
}

/** What a candidate says. Images among the thoughts are drafts and left out. @throws UpstreamError `bad_response` */
export function readCandidate(candidate: Fields, newCallId: NewCallId): Said {
  let text = '';
  let thoughts = '';
  const signatures: string[] = [];
  const images: CompletionImage[] = [];
  const calls: ToolCall[] = [];
  for (const part of partsOf(candidate)) {
    const { text: piece = '', thought, functionCall } = part;
    if (typeof piece !== 'string') throw malformed();
    if (isRecord(functionCall)) {
      calls.push(toToolCall(part, functionCall, newCallId));
      continue;
    }
    if (thought === true) thoughts += piece;
    else text += piece;
    const image = thought === true ? undefined : toImage(part);
    const signature = signatureOf(part);
    if (image !== undefined) images.push(image);
    else if (signature !== undefined) signatures.push(signature);
  }
  return { text, thoughts, signatures, images, calls };
}

/** The fields that a message and a delta have in common; `signatures` is how many the message had before. */
export function commonFields(
  said: Said,
  candidate: Fields,
  signatures: number,
): { reasoning?: string; reasoning_details?: ReasoningDetail[]; images?: CompletionImage[] } {
  const { groundingMetadata: grounding } = candidate;
  return {
    ...(said.thoughts === '' ? {} : { reasoning: said.thoughts }),
    ...(said.signatures.length === 0 ? {} : { reasoning_details: toReasoningDetails(said.signatures, signatures) }),
    ...(said.images.length === 0 ? {} : { images: [...said.images] }),
    ...(isRecord(grounding) ? { extra_content: { google: { grounding_metadata: grounding } } } : {}),
  };
}

/** More searches than any answer takes. */
const MAX_QUERIES = 1000;

/** Notes what a candidate shows of its use: images, and the searches made for it; empty queries are not charged. */
export function noteUse(said: Said, candidate: Fields, shown: Shown): void {
  shown.images += said.images.length;
  const { webSearchQueries: queries } = record(candidate.groundingMetadata);
  if (!Array.isArray(queries)) return;
  for (const query of queries) {
    if (shown.queries.size === MAX_QUERIES) return;
    // Kept until the stream ends: a hash of each takes little, however long they are.
    if (typeof query === 'string' && query !== '') shown.queries.add(hash('sha256', query));
  }
}
