import type { OutboundRequest } from '../../net/transport.ts';
import type { ChatCall, Endpoint } from '../wire/adapter.ts';
import { isRecord } from '../wire/json.ts';
import { NONE, takenFields } from '../wire/request-fields.ts';
import type { OpenAiDialect } from './dialects.ts';
import { translateMessages } from './messages.ts';
import { openAiPost } from './whole.ts';

type Body = Record<string, unknown>;

/**
 * The caller's request with the provider's `model`, in its dialect. Usage is always asked for.
 */
export function buildChatRequest(call: ChatCall, endpoint: Endpoint, dialect: OpenAiDialect): OutboundRequest {
  return openAiPost('/chat/completions', chatBody(call, dialect), endpoint, call.request.stream === true);
}

function chatBody(
  { request, mapping, namedFields: named = NONE, maxOutputTokens }: ChatCall,
  dialect: OpenAiDialect,
): Body {
  const body: Body = takenFields(request, { extensions: dialect.extensions, named });
  body.model = mapping.externalId;
  body.messages = translateMessages(request.messages, dialect.messages, mapping.reasoning);
  for (const field of dialect.cannot) delete body[field];
  for (const [field, name] of Object.entries(dialect.renamed ?? {})) rename(body, field, name);
  limitOutput(body, dialect, maxOutputTokens);
  if (dialect.noStreamOptions === true) {
    delete body.stream_options;
  } else if (request.stream === true) {
    const { stream_options: options } = request;
    body.stream_options = isRecord(options) ? { ...options, include_usage: true } : { include_usage: true };
  }
  return body;
}

/** A caller who used the provider's own name too is taken at that word. */
function rename(body: Body, field: string, name: string): void {
  const { [field]: value } = body;
  if (value === undefined) return;
  delete body[field];
  body[name] ??= value;
}

/** Puts the most tokens to generate, ours before the caller's, into the one field that the provider knows. */
function limitOutput(body: Body, { maxTokens }: OpenAiDialect, ours: number | undefined): void {
  if (maxTokens === undefined && ours === undefined) return;
  const { max_tokens: older, max_completion_tokens: newer } = body;
  const limit = ours ?? newer ?? older;
  const field = maxTokens ?? (typeof newer === 'number' ? 'max_completion_tokens' : 'max_tokens');
  delete body[field === 'max_tokens' ? 'max_completion_tokens' : 'max_tokens'];
  if (limit !== undefined) body[field] = limit;
}
