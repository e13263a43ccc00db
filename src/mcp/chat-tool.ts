import type { CallToolResult } from '@modelcontextprotocol/server';
import schema from '../../schemas/mcp/chat.json' with { type: 'json' };
import { type CompleteChatDeps, completeChat } from '../core/chat/complete-chat.ts';
import { validateChatArguments } from '../generated/validators.js';
import { field, readAnswer } from './read-answer.ts';
import { defineTool, type McpTool, type ToolFacts, text, usageMeta } from './tool.ts';

export const CHAT: ToolFacts = { name: 'chat', title: 'Chat', schema, isReadOnly: false };

/** `chat`: the same call as `POST /v1/chat/completions`, answered with the text of the first choice. */
export const chatTool = (deps: CompleteChatDeps): McpTool =>
  defineTool(CHAT, validateChatArguments, async ({ principal, context, takeRate }, args): Promise<CallToolResult> => {
    takeRate('chat');
    const outcome = await completeChat(deps, principal, context, args);
    if (outcome.kind === 'stream') throw new Error('a chat that was not to be streamed was streamed');
    const answer = readAnswer(outcome.completion);
    const message = field(field(field(answer, 'choices'), 0), 'message');
    const [content, refusal] = [field(message, 'content'), field(message, 'refusal')];
    const said = typeof content === 'string' && content !== '' ? content : refusal;
    const { model, usage, metadata } = outcome.completion.ours;
    return {
      content: [text(typeof said === 'string' ? said : '')],
      _meta: { 'portcullis/model': model, 'portcullis/usage': usageMeta(usage), 'portcullis/metadata': metadata },
    };
  });
