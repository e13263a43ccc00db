import type { ChatMessage, ChatRequest, ContentPart } from '../../generated/types.ts';

/** What a request holds for a model to read, as an estimate sees it. */
export interface PromptContent {
  /** Each counted by itself. */
  readonly texts: readonly string[];
  /** Allowances for what is no text. */
  readonly imageTokens: number;
  readonly audioTokens: number;
  readonly videoTokens: number;
  /** Allowances for files, and what the form of a chat adds. */
  readonly otherTokens: number;
}

/** An image of 1024 by 1024 pixels, as OpenAI counts it; half a minute of sound and of film, and six pages, as Google does. */
const ALLOWANCES = { image: 765, audio: 960, video: 7890, file: 1548 };

/** What OpenAI's form adds to a message, to a name in it, and once for the answer that is to follow. */
const FORM = { message: 4, name: 1, request: 3 };

const partsOf = ({ content }: ChatMessage): readonly ContentPart[] => (Array.isArray(content) ? content : []);

/** The images in a request's messages. */
export const imagesIn = ({ messages }: ChatRequest): number =>
  messages.reduce((sum, message) => sum + partsOf(message).filter(({ type }) => type === 'image_url').length, 0);

/** Everything of a request that a model reads: messages, the tools it may call, the form that the answer must have. */
export function promptContent(request: ChatRequest): PromptContent {
  const texts: string[] = [];
  const media = { imageTokens: 0, audioTokens: 0, videoTokens: 0 };
  let otherTokens = FORM.request;
  for (const message of request.messages) {
    otherTokens += FORM.message;
    if (typeof message.name === 'string') otherTokens += FORM.name;
    texts.push(...messageTexts(message));
    for (const part of partsOf(message)) {
      if (part.type === 'text') texts.push(part.text ?? '');
      else if (part.type === 'refusal') texts.push(part.refusal ?? '');
      else if (part.type === 'image_url') media.imageTokens += ALLOWANCES.image;
      else if (part.type === 'input_audio') media.audioTokens += ALLOWANCES.audio;
      else if (part.type === 'video_url') media.videoTokens += ALLOWANCES.video;
      else otherTokens += ALLOWANCES.file;
    }
  }
  for (const described of [request.tools, request.functions, request.response_format]) {
    if (described !== undefined && described !== null) texts.push(JSON.stringify(described));
  }
  return { texts, ...media, otherTokens };
}

function messageTexts({
  content,
  name,
  reasoning,
  refusal,
  tool_calls: calls,
  function_call: call,
}: ChatMessage): string[] {
  const texts = [content, name, reasoning, refusal, call?.name, call?.arguments];
  for (const { function: called, custom } of calls ?? []) {
    texts.push(called?.name, called?.arguments, custom?.name, custom?.input);
  }
  return texts.filter((text) => typeof text === 'string');
}
