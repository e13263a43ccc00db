import type { ChatMessage } from '../../generated/types.ts';
import { isRecord, record } from '../wire/json.ts';
import { type CalledFunctions, callParts, resultPart } from './function-parts.ts';
import { imageFromUrl, type Part } from './media.ts';
import { toParts } from './parts.ts';
import { signatureOn, textSignatures } from './signatures.ts';

/** A turn of the conversation. */
interface Content {
  readonly role: 'user' | 'model';
  readonly parts: Part[];
}

export interface Conversation {
  readonly contents: readonly Content[];
  /** What system and developer messages say, wherever they stand. */
  readonly systemInstruction?: { readonly parts: readonly Part[] };
}

/**
 * The conversation in Google's form. Neighbours of one role are one turn, so that the results of parallel calls come together;
 * results keep a turn of their own, as Google wants them right behind the calls.
 * @throws UpstreamError for what the provider does not take
 */
export function toConversation(messages: readonly ChatMessage[], externalId: string): Conversation {
  const called: CalledFunctions = new Map();
  const system: Part[] = [];
  const contents: Content[] = [];
  let lastKind = '';
  for (const message of messages) {
    const { role } = message;
    if (role === 'system' || role === 'developer') {
      system.push(...toParts(message.content, externalId));
      continue;
    }
    const kind = role === 'function' ? 'tool' : role;
    const parts = turnParts(message, externalId, called);
    if (parts.length === 0) continue;
    const last = contents.at(-1);
    if (last !== undefined && kind === lastKind) last.parts.push(...parts);
    else contents.push({ role: role === 'assistant' ? 'model' : 'user', parts: [...parts] });
    lastKind = kind;
  }
  // Google wants a turn: instructions alone are taken for one, as OpenAI does.
  if (contents.length === 0) return { contents: [{ role: 'user', parts: system }] };
  return system.length === 0 ? { contents } : { contents, systemInstruction: { parts: system } };
}

function turnParts(message: ChatMessage, externalId: string, called: CalledFunctions): Part[] {
  switch (message.role) {
    case 'assistant':
      return [
        ...signedText(message, externalId),
        ...earlierImages(message, externalId),
        ...callParts(message, externalId, called),
      ];
    case 'tool':
    case 'function':
      return [resultPart(message, externalId, called)];
    default:
      return toParts(message.content, externalId);
  }
}

/**
 * What the assistant said, with its signatures. They came on parts whose texts were joined: the first goes back on the text,
 * others on empty parts behind it, which is how Google itself sends a signature that comes after all text.
 */
function signedText(message: ChatMessage, externalId: string): Part[] {
  const parts = toParts(message.content ?? message.refusal, externalId);
  const [first, ...others] = textSignatures(message.reasoning_details);
  if (first === undefined) return parts;
  const last = parts.at(-1);
  const signed = last !== undefined && typeof last.text === 'string' ? last : { text: '' };
  const before = signed === last ? parts.slice(0, -1) : parts;
  return [
    ...before,
    { ...signed, thoughtSignature: first },
    ...others.map((thoughtSignature) => ({ text: '', thoughtSignature })),
  ];
}

/** Images of an earlier answer that came back in `images`, where our answers have them. */
function earlierImages(message: ChatMessage, externalId: string): Part[] {
  const { images } = record(message);
  if (!Array.isArray(images)) return [];
  return images.flatMap((image: unknown) => {
    const { url } = record(record(image).image_url);
    if (!isRecord(image) || typeof url !== 'string') return [];
    const signature = signatureOn(image);
    return [{ ...imageFromUrl(url, externalId), ...(signature === undefined ? {} : { thoughtSignature: signature }) }];
  });
}
