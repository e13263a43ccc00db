import type { ChatMessage } from '../../generated/types.ts';
import { notTakenByProvider } from '../wire/upstream-error.ts';
import { type Block, cacheControl, textBlocks } from './block.ts';
import { contentBlocks, systemBlocks } from './content.ts';
import { thinkingBlocks } from './reasoning.ts';
import { toolUse, toolUseId, toolUses } from './tool-call.ts';

export interface Turn {
  readonly role: 'user' | 'assistant';
  readonly content: readonly Block[];
}

export interface Conversation {
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
