import type { CompletionMessage, ReasoningDetail, ToolCall } from '../../generated/types.ts';
import type { GatheredResponse } from '../../net/exchange.ts';
import type { UpstreamCompletion } from '../wire/adapter.ts';
import { isRecord, modelId, parseJson, record } from '../wire/json.ts';
import { badResponse } from '../wire/upstream-error.ts';
import { annotations, finishReason, MAX_BLOCKS, otherFields, refusalText, sourcesOf } from './answer.ts';
import { reportedError } from './error.ts';
import { ANSWER_TOOL } from './format.ts';
import { encryptedDetail, textDetail } from './reasoning.ts';
import { anthropicUsage, reportUsage } from './usage.ts';

type Fields = Readonly<Record<string, unknown>>;

/** A message in the making. */
interface Draft {
  content: string;
  reasoning: string;
  readonly details: ReasoningDetail[];
  readonly calls: ToolCall[];
  readonly annotations: Fields[];
}

/** A whole answer. @throws UpstreamError `bad_response`, or the error that the answer is */
export function parseResponse(response: GatheredResponse, secret?: string): UpstreamCompletion {
  const answer = parseJson(response.text);
  const error = reportedError(answer, secret);
  if (error !== undefined) throw error;
  if (!isRecord(answer) || !Array.isArray(answer.content)) throw malformed();
  if (answer.content.length > MAX_BLOCKS) throw badResponse('The provider sent too many blocks.');
  const draft: Draft = { content: '', reasoning: '', details: [], calls: [], annotations: [] };
  for (const [index, block] of answer.content.entries()) {
    if (!isRecord(block)) throw malformed();
    addBlock(draft, index, block);
  }
  const reason = typeof answer.stop_reason === 'string' ? answer.stop_reason : 'end_turn';
  const message = messageOf(draft, refusalText(answer.stop_details));
  return {
    model: modelId(answer.model),
    choices: [{ index: 0, message, finish_reason: finishReason(reason, draft.calls.length > 0) }],
    usage: anthropicUsage(reportUsage({}, answer.usage)),
    fields: otherFields(answer),
  };
}

const malformed = () => badResponse('The provider sent a malformed answer.');

const text = (value: unknown): string => (typeof value === 'string' ? value : '');

/** Blocks of other types (the provider's own tools and their results) tell the caller nothing that they could use. */
function addBlock(draft: Draft, index: number, block: Fields): void {
  switch (block.type) {
    case 'text': {
      const start = draft.content.length;
      draft.content += text(block.text);
      draft.annotations.push(...annotations(sourcesOf(block.citations), start, draft.content.length));
      break;
    }
    case 'thinking':
      draft.reasoning += text(block.thinking);
      draft.details.push(textDetail(index, { text: text(block.thinking), signature: text(block.signature) }));
      break;
    case 'redacted_thinking':
      draft.details.push(encryptedDetail(index, text(block.data)));
      break;
    case 'tool_use':
      addCall(draft, block);
      break;
  }
}

function addCall(draft: Draft, { id, name, input }: Fields): void {
  if (typeof id !== 'string' || typeof name !== 'string') throw malformed();
  const args = JSON.stringify(record(input));
  if (name === ANSWER_TOOL) draft.content += args;
  else draft.calls.push({ id, type: 'function', function: { name, arguments: args } });
}

function messageOf(draft: Draft, refusal: string | undefined): CompletionMessage {
  const { content, reasoning, details, calls, annotations: sources } = draft;
  return {
    role: 'assistant',
    content: content === '' && calls.length > 0 ? null : content,
    ...(reasoning === '' ? {} : { reasoning }),
    ...(details.length === 0 ? {} : { reasoning_details: details }),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
    ...(refusal === undefined ? {} : { refusal }),
    ...(sources.length === 0 ? {} : { annotations: sources }),
  };
}
