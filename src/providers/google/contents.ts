import type { ChatMessage, ContentPart, MessageToolCall, ReasoningDetail } from '../../generated/types.ts';
import { isRecord, parseJson, record } from '../wire/fields.ts';
import { notTakenByProvider } from '../wire/upstream-error.ts';
import { fetchesLinks, requiresSignatures, takesMediaResults } from './thinking.ts';

/** A turn of the conversation. */
interface Content {
  readonly role: 'user' | 'model';
  readonly parts: Part[];
}

interface Conversation {
  readonly contents: readonly Content[];
  /** Text of system and developer messages, wherever they stand. */
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
 * Text of an assistant message, with its signatures. They came on parts whose texts were joined: the first goes back on the
 * text, others on empty parts after it, as Google itself sends a signature that comes after all text.
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

/**
 * Converts a message to Google's parts. Empty text is left out: Google refuses it.
 * @throws UpstreamError for content that the provider does not take
 */
function toParts(content: ChatMessage['content'], externalId: string): Part[] {
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

/** Which function each call of the conversation so far was for, by its id. */
type CalledFunctions = Map<string, string>;

/** Arguments are an object there; text that is none, which a model may have written, goes along under a name. */
function toArgs(text: string): Readonly<Record<string, unknown>> {
  if (text.trim() === '') return {};
  const args = parseJson(text);
  return isRecord(args) ? args : { arguments: text };
}

/** A call without its id: the old form has none. */
const callPart = (id: string | undefined, name: string, args: unknown, signature: string | undefined): Part => ({
  functionCall: id === undefined ? { name, args } : { id, name, args },
  ...(signature === undefined ? {} : { thoughtSignature: signature }),
});

function toolCallPart(call: MessageToolCall, signature: string | undefined): Part {
  const { id } = call;
  if (call.type === 'custom') return callPart(id, call.custom?.name ?? '', { input: call.custom?.input }, signature);
  return callPart(id, call.function?.name ?? '', toArgs(call.function?.arguments ?? ''), signature);
}

/**
 * The calls of an assistant's turn, each with its signature. Gemini signs the first of parallel calls and refuses a turn whose
 * first call is unsigned: one whose signature got lost, or that another provider's model made, gets the documented stand-in.
 */
function callParts(message: ChatMessage, externalId: string, called: CalledFunctions): Part[] {
  const { tool_calls: calls, function_call: old } = message;
  const parts = (calls ?? []).map((call, position) => {
    called.set(call.id, call.function?.name ?? call.custom?.name ?? '');
    const lost = position === 0 && requiresSignatures(externalId) ? LOST_SIGNATURE : undefined;
    return toolCallPart(call, signatureOn(call) ?? lost);
  });
  if (old === null || old === undefined) return parts;
  const lost = parts.length === 0 && requiresSignatures(externalId) ? LOST_SIGNATURE : undefined;
  return [...parts, callPart(undefined, old.name, toArgs(old.arguments), lost)];
}

const isText = (part: Part): boolean => typeof part.text === 'string';

/** A result is an object there: any other text, also that of a list or a number, is wrapped as it stands. */
function toResponse(parts: readonly Part[]): Readonly<Record<string, unknown>> {
  const text = parts.map((part) => (typeof part.text === 'string' ? part.text : '')).join('');
  const value = parseJson(text);
  return isRecord(value) ? value : { result: text };
}

/**
 * The result of a call. `called` tells the function's name, which OpenAI's form leaves out.
 * @throws UpstreamError for the result of no earlier call, and for images on models that take text only
 */
function resultPart(message: ChatMessage, externalId: string, called: CalledFunctions): Part {
  const { tool_call_id: id, name: stated } = message;
  const name = (typeof id === 'string' ? called.get(id) : undefined) ?? stated;
  if (typeof name !== 'string') throw notTakenByProvider('A tool result does not belong to any earlier tool call.');
  const parts = toParts(message.content, externalId);
  const media = parts.filter((part) => !isText(part));
  if (media.length > 0 && !takesMediaResults(externalId)) {
    throw notTakenByProvider('This model takes text as the result of a tool only.');
  }
  return {
    functionResponse: {
      ...(typeof id === 'string' ? { id } : {}),
      name,
      response: toResponse(parts),
      ...(media.length === 0 ? {} : { parts: media }),
    },
  };
}

/** A part of a turn, as Google writes it. */
type Part = Readonly<Record<string, unknown>>;

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
const imageFromUrl = (url: string, externalId: string): Part => fromUrl(url, externalId, 'image/jpeg');

/** Base64 of a file whose type is stated, or told by its name; a file that says neither is taken for a PDF. */
const inlineFile = (data: string, name: string | null | undefined): Part => ({
  inlineData: { mimeType: typeByName(name ?? '') ?? 'application/pdf', data },
});

const inlineAudio = (data: string, format: string | undefined): Part => ({
  inlineData: { mimeType: `audio/${format ?? 'wav'}`, data },
});

/** A data URL as inline data; undefined for any other text. @throws UpstreamError for a data URL that is not base64 */
function fromDataUrl(url: string): Part | undefined {
  if (!/^data:/i.test(url)) return undefined;
  const [head, mimeType] = DATA_URL.exec(url) ?? [];
  if (head === undefined || mimeType === undefined) {
    throw notTakenByProvider('This provider takes data URLs in base64 only, with a media type.');
  }
  return { inlineData: { mimeType, data: url.slice(head.length) } };
}

/**
 * Makes a part of a URL. The gateway fetches nothing: an https address goes to the provider, which fetches public ones
 * (documented for `fileData.fileUri`; its type is optional there, and is stated where the name reveals it).
 * @param unnamed type where the name does not reveal it; undefined: Google finds out
 * @throws UpstreamError for any other address, and on models that fetch none
 */
function fromUrl(url: string, externalId: string, unnamed?: string): Part {
  const inline = fromDataUrl(url);
  if (inline !== undefined) return inline;
  if (!URL.canParse(url) || new URL(url).protocol !== 'https:') {
    throw notTakenByProvider('This provider takes data URLs and https addresses only.');
  }
  if (!fetchesLinks(externalId)) throw notTakenByProvider('This model takes images and files as data URLs only.');
  const mimeType = typeByName(new URL(url).pathname) ?? unnamed;
  return { fileData: mimeType === undefined ? { fileUri: url } : { mimeType, fileUri: url } };
}

/**
 * Places of Gemini's thought signatures in OpenAI's form. Those of function calls and images stand on the tool call or image
 * itself, in `extra_content.google.thought_signature`; those of text in `reasoning_details`, one entry each.
 */

/** Google documents this text in the place of a signature that got lost: the call is then not refused for lack of one. */
const LOST_SIGNATURE = 'skip_thought_signature_validator';

const FORMAT = 'google';
const TYPE = 'reasoning.encrypted';

/** The signature on a tool call or an image that came back; undefined when the caller's SDK dropped it. */
function signatureOn(holder: unknown): string | undefined {
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
function textSignatures(details: readonly ReasoningDetail[] | null | undefined): string[] {
  const signatures: string[] = [];
  for (const detail of details ?? []) {
    if (!isRecord(detail) || detail.type !== TYPE || detail.format !== FORMAT) continue;
    if (typeof detail.data === 'string' && detail.data !== '') signatures.push(detail.data);
  }
  return signatures;
}
