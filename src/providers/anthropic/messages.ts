import { createHash } from 'node:crypto';
import type { ChatMessage, ContentPart, ReasoningDetail } from '../../generated/types.ts';
import { isRecord, parseJson } from '../wire/fields.ts';
import { notTakenByProvider } from '../wire/upstream-error.ts';

export interface Turn {
  readonly role: 'user' | 'assistant';
  readonly content: readonly Block[];
}

interface Conversation {
  /** Every system and developer message, wherever it stood: the API has one place for them. */
  readonly system: readonly Block[];
  /** Alternating, the user's first; at least one, unless nothing at all was said. */
  readonly turns: readonly Turn[];
}

/** A turn in the making. */
interface Draft {
  readonly role: Turn['role'];
  /** They must stand before all else, and those of parallel calls together. */
  readonly results: Block[];
  readonly others: Block[];
}

/** Said by nobody: the API wants a user's turn first, and no text of it may be empty. */
const OPENING: Turn = { role: 'user', content: [{ type: 'text', text: '(The assistant begins.)' }] };

/**
 * OpenAI's list of messages as the API's alternating turns: messages of one side in a row are one turn.
 * @throws UpstreamError `rejected` for what the API does not take
 */
export function conversation(messages: readonly ChatMessage[]): Conversation {
  const system: Block[] = [];
  const drafts: Draft[] = [];
  const draft = (role: Turn['role']): Draft => {
    const last = drafts.at(-1);
    if (last?.role === role) return last;
    const next: Draft = { role, results: [], others: [] };
    drafts.push(next);
    return next;
  };
  let functionId = 'function';
  for (const [position, message] of messages.entries()) {
    const where = `/messages/${position}`;
    switch (message.role) {
      case 'system':
      case 'developer':
        for (const block of systemBlocks(message.content)) system.push(block);
        break;
      case 'user':
        append(draft, 'user', contentBlocks(message.content));
        break;
      case 'assistant':
        functionId = `function_${position}`;
        append(draft, 'assistant', assistantBlocks(message, functionId, where));
        break;
      default:
        // A result of the old form names no call: it answers the last one.
        draft('user').results.push(toolResult(message, message.tool_call_id ?? functionId));
    }
  }
  return arrange(system, drafts);
}

/** A message of which nothing is left makes no turn: the API refuses empty ones. */
function append(draft: (role: Turn['role']) => Draft, role: Turn['role'], blocks: readonly Block[]): void {
  if (blocks.length === 0) return;
  const { others } = draft(role);
  for (const block of blocks) others.push(block);
}

/** Thoughts first, as the API wants them, then what was said, then the calls. */
function assistantBlocks(message: ChatMessage, functionId: string, where: string): Block[] {
  if (message.audio != null) throw notTakenByProvider('The provider takes no audio.');
  const { function_call: call } = message;
  return [
    ...thinkingBlocks(message.reasoning_details),
    ...contentBlocks(message.content),
    ...textBlocks(message.refusal ?? ''),
    ...toolUses(message, where),
    ...(call == null ? [] : [toolUse(functionId, call, `${where}/function_call`)]),
  ];
}

/** The mark of a cached part moves to the result itself: the API caches whole results only. */
function toolResult({ content }: ChatMessage, callId: string): Block {
  const marked = Array.isArray(content) ? content.findLast((part) => part.cache_control != null) : undefined;
  const blocks = contentBlocks(content).map(({ cache_control: _, ...block }): Block => block);
  return {
    type: 'tool_result',
    tool_use_id: toolUseId(callId),
    ...(blocks.length === 0 ? {} : { content: blocks }),
    ...cacheControl(marked?.cache_control),
  };
}

function arrange(system: readonly Block[], drafts: readonly Draft[]): Conversation {
  const turns = drafts.map(({ role, results, others }): Turn => ({ role, content: [...results, ...others] }));
  const [first] = turns;
  // Instructions alone are a conversation for OpenAI; here someone must have said something.
  if (first === undefined) return { system: [], turns: system.length === 0 ? [] : [{ role: 'user', content: system }] };
  return { system, turns: first.role === 'user' ? turns : [OPENING, ...turns] };
}

/**
 * A message's content as blocks, in order; empty texts are left out.
 * @throws UpstreamError `rejected` for what the API does not take
 */
function contentBlocks(content: ChatMessage['content']): Block[] {
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
function systemBlocks(content: ChatMessage['content']): Block[] {
  const blocks = contentBlocks(content);
  if (blocks.some(({ type }) => type !== 'text')) {
    throw notTakenByProvider('The provider takes nothing but text in system messages.');
  }
  return blocks;
}

/** A content block of the Messages API. */
export interface Block {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** A caller's `cache_control` (its `ttl` too) as the field of a block; nothing for anything that is none. */
export const cacheControl = (value: unknown): { readonly cache_control?: Readonly<Record<string, unknown>> } =>
  isRecord(value) ? { cache_control: value } : {};

/** A text block; none for a text of nothing but blanks, which the API refuses. */
export const textBlocks = (text: string, cache?: ContentPart['cache_control']): Block[] =>
  text.trim() === '' ? [] : [{ type: 'text', text, ...cacheControl(cache) }];

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
function imageBlock({ image_url: image, cache_control: cache }: ContentPart): Block {
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
function fileBlock({ file, cache_control: cache }: ContentPart): Block {
  const data = file?.file_data ?? '';
  const source = isDataUrl(data) ? base64Source(data) : { type: 'base64' as const, media_type: PDF, data };
  if (source?.media_type !== PDF || source.data === '') {
    throw notTakenByProvider('The provider takes files as PDF data only.');
  }
  const title = file?.filename ?? '';
  return { type: 'document', source, ...(title === '' ? {} : { title }), ...cacheControl(cache) };
}

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
function thinkingBlocks(details: ChatMessage['reasoning_details']): Block[] {
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

/** An id that the API takes: other providers' ids may hold characters that it refuses, so those are hashed, always alike. */
const toolUseId = (id: string): string =>
  /^[A-Za-z0-9_-]{1,128}$/.test(id) ? id : `call_${createHash('sha256').update(id).digest('hex').slice(0, 32)}`;

/** @param where names the call in the error. @throws UpstreamError `rejected` for arguments that are no JSON object */
function toolUse(id: string, call: { readonly name: string; readonly arguments: string }, where: string): Block {
  const input = call.arguments.trim() === '' ? {} : parseJson(call.arguments);
  if (!isRecord(input)) {
    throw notTakenByProvider(
      `The provider takes tool calls with arguments that are a JSON object; ${where} has others.`,
    );
  }
  return { type: 'tool_use', id: toolUseId(id), name: call.name, input };
}

/** The calls of an earlier answer. @param where JSON pointer of the message */
function toolUses({ tool_calls: calls }: ChatMessage, where: string): Block[] {
  return (calls ?? []).map((call, position) => {
    if (call.function === undefined) throw notTakenByProvider('The provider takes function calls only.');
    return toolUse(call.id, call.function, `${where}/tool_calls/${position}`);
  });
}
