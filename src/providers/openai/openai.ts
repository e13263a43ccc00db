import type { ChatRequest } from '../../generated/types.ts';
import type { Adapter } from '../wire/adapter.ts';
import { droppedBy, isRecord, type RequestTable, record, unsupportedBy } from '../wire/fields.ts';
import { parseCompletion, readError, reportedUsage } from './answer.ts';
import { imageUsage, openAiImages } from './images.ts';
import { openAiModerations } from './moderations.ts';
import { buildChatRequest, type OpenAiDialect, openAiDialect } from './request.ts';
import { OpenAiStream } from './stream.ts';

const adapters = new Map<OpenAiDialect, Adapter>();

const unreportedSearches = ({ web_search_options: options }: ChatRequest): number => (isRecord(options) ? 1 : 0);

/** The adapter for a provider that speaks OpenAI's wire format, each in its dialect. One for all that have none of their own. */
export function openAiAdapterFor(providerId: string): Adapter {
  const dialect = openAiDialect(providerId);
  const known = adapters.get(dialect);
  if (known !== undefined) return known;
  const table: RequestTable = { extensions: dialect.extensions, cannot: () => dialect.cannot };
  const adapter: Adapter = {
    unsupported: (call) => unsupportedBy(call, table),
    dropped: (call) => droppedBy(call, table),
    ...(dialect.searchesUnreported === true ? { unreportedSearches } : {}),
    buildRequest: (call, endpoint) => buildChatRequest(call, endpoint, dialect),
    parseResponse: parseCompletion,
    parseStream: (response, secret) => new OpenAiStream(response, secret),
    reportedUsage: (answer) => reportedUsage(record(answer)) ?? imageUsage(record(answer).usage),
    parseError: readError,
    images: openAiImages,
    moderations: openAiModerations,
  };
  adapters.set(dialect, adapter);
  return adapter;
}

/** The adapter for a server of which no dialect is known: the sandbox, the environment's upstreams, custom providers. */
export const openAiAdapter: Adapter = openAiAdapterFor('');
