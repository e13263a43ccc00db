import type { ChatMessage, ChatRequest, FinishReason } from '../../generated/types.ts';
import { jsonSample } from './json-sample.ts';
import { TOKEN_LENGTH, textTokens } from './tokens.ts';

/** What the sandbox says in one choice: text, or a call of one tool. */
export interface SandboxChoice {
  readonly index: number;
  /** The text, or the arguments of the tool, by token. */
  readonly pieces: readonly string[];
  readonly tool: { readonly id: string; readonly name: string } | undefined;
  readonly finishReason: FinishReason;
  /** Pictures in base64. */
  readonly images: readonly string[];
}

export interface SandboxAnswer {
  readonly choices: readonly SandboxChoice[];
  readonly usage: {
    readonly prompt_tokens: number;
    readonly completion_tokens: number;
    readonly total_tokens: number;
    /** Of the models that draw. */
    readonly completion_tokens_details?: { readonly image_tokens: number };
  };
}

const TOKENS_PER_MEDIA_PART = 85;
const MAX_OUTPUT_TOKENS = 4096;
const MAX_ECHO_LENGTH = 2000;

/** The sandbox's whole answer: a pure function of the request. */
export function answer(request: ChatRequest): SandboxAnswer {
  const choices = Array.from({ length: request.n ?? 1 }, (_, index) => choice(request, index));
  const promptTokens = request.messages.reduce((sum, message) => sum + messageTokens(message), 0);
  const completionTokens = choices.reduce((sum, { pieces }) => sum + pieces.length, 0);
  return {
    choices,
    usage: {
      prompt_tokens: promptTokens,
      completion_tokens: completionTokens,
      total_tokens: promptTokens + completionTokens,
    },
  };
}

/** The text of the last message: what the sandbox echoes, and where its directives stand. */
export function lastText(request: ChatRequest): string {
  const last = request.messages.at(-1);
  return last === undefined ? '' : messageText(last).slice(0, MAX_ECHO_LENGTH).toWellFormed();
}

function choice(request: ChatRequest, index: number): SandboxChoice {
  const tool = calledTool(request);
  const whole = tool === undefined ? cutAtStop(replyText(request, index), request.stop) : tool.arguments;
  const pieces = tokens(whole);
  const limit = Math.min(request.max_completion_tokens ?? request.max_tokens ?? MAX_OUTPUT_TOKENS, MAX_OUTPUT_TOKENS);
  const isCut = pieces.length > limit;
  return {
    index,
    pieces: isCut ? pieces.slice(0, limit) : pieces,
    tool: tool === undefined ? undefined : { id: `call_${request.messages.length}_${index}`, name: tool.name },
    finishReason: isCut ? 'length' : tool === undefined ? 'stop' : 'tool_calls',
    images: [],
  };
}

function replyText(request: ChatRequest, index: number): string {
  const said = request.messages.at(-1)?.role === 'tool' ? 'The tool said' : 'You said';
  const text = `${said}${index === 0 ? '' : ` (${index + 1})`}: ${lastText(request)}`;
  const format = request.response_format;
  if (format?.type === 'json_object') return JSON.stringify({ reply: text });
  if (format?.type === 'json_schema') return JSON.stringify(jsonSample(format.json_schema?.schema));
  return text;
}

/** The tool that the request forces, or whose name stands as a word in the user's last message. */
function calledTool(request: ChatRequest): { name: string; arguments: string } | undefined {
  const { tool_choice: choice } = request;
  const last = request.messages.at(-1);
  const functions = (request.tools ?? []).flatMap((tool) => (tool.function === undefined ? [] : [tool.function]));
  if (choice === 'none' || last?.role === 'tool') return undefined;
  const forced = typeof choice === 'object' && choice !== null ? choice.function?.name : undefined;
  const words = new Set(lastText(request).split(/[^A-Za-z0-9_-]+/));
  const called =
    functions.find(({ name }) => (forced === undefined ? words.has(name) : name === forced)) ??
    (choice === 'required' ? functions[0] : undefined);
  return called && { name: called.name, arguments: JSON.stringify(jsonSample(called.parameters)) };
}

function cutAtStop(text: string, stop: ChatRequest['stop']): string {
  const stops = typeof stop === 'string' ? [stop] : (stop ?? []);
  const ends = stops.filter((end) => end !== '').map((end) => text.indexOf(end));
  return text.slice(0, Math.min(text.length, ...ends.filter((end) => end !== -1)));
}

function tokens(text: string): string[] {
  const characters = Array.from(text);
  const pieces: string[] = [];
  for (let start = 0; start < characters.length; start += TOKEN_LENGTH) {
    pieces.push(characters.slice(start, start + TOKEN_LENGTH).join(''));
  }
  return pieces;
}

function messageText({ content }: ChatMessage): string {
  if (typeof content === 'string') return content;
  return (content ?? []).map((part) => part.text ?? '').join('');
}

function messageTokens(message: ChatMessage): number {
  const media = Array.isArray(message.content) ? message.content.filter((part) => part.text === undefined).length : 0;
  return textTokens(messageText(message)) + media * TOKENS_PER_MEDIA_PART;
}
