import type { ChatRequest, ResponseFormat } from '../../generated/types.ts';
import type { ChatCall } from '../wire/adapter.ts';
import { isRecord, record } from '../wire/json.ts';
import { toGoogleSchema } from './schema.ts';
import { thinkingConfig } from './thinking.ts';

type Fields = Readonly<Record<string, unknown>>;

const MODALITIES: ReadonlyMap<string, string> = new Map([
  ['text', 'TEXT'],
  ['image', 'IMAGE'],
]);

function stopSequences(stop: ChatRequest['stop']): string[] | undefined {
  const stops = typeof stop === 'string' ? [stop] : (stop ?? []);
  return stops.length === 0 ? undefined : stops;
}

function responseModalities(modalities: ChatRequest['modalities']): string[] | undefined {
  if (!Array.isArray(modalities) || modalities.length === 0) return undefined;
  return modalities.flatMap((modality) => MODALITIES.get(modality) ?? []);
}

function formatFields(format: ResponseFormat | undefined): Fields {
  switch (format?.type) {
    case 'json_object':
      return { responseMimeType: 'application/json' };
    case 'json_schema': {
      const schema = format?.json_schema?.schema;
      const json = { responseMimeType: 'application/json' };
      return isRecord(schema) ? { ...json, responseJsonSchema: toGoogleSchema(schema) } : json;
    }
    default:
      return {};
  }
}

/** Fields that are null are absent. */
function present(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== null));
}

/**
 * `generationConfig`. The maximum of tokens is the gateway's where it set one, else the caller's. What Gemini has no word for
 * (options.ts) is left out.
 */
export function toGenerationConfig(call: ChatCall): Fields {
  const { request, mapping } = call;
  return present({
    temperature: request.temperature,
    topP: request.top_p,
    topK: record(request).top_k,
    maxOutputTokens: call.maxOutputTokens ?? request.max_completion_tokens ?? request.max_tokens,
    stopSequences: stopSequences(request.stop),
    candidateCount: request.n,
    seed: request.seed,
    presencePenalty: request.presence_penalty,
    frequencyPenalty: request.frequency_penalty,
    responseLogprobs: request.logprobs === true ? true : undefined,
    logprobs: request.logprobs === true ? request.top_logprobs : undefined,
    responseModalities: responseModalities(request.modalities),
    thinkingConfig: thinkingConfig(mapping.externalId, request.reasoning_effort),
    ...formatFields(request.response_format),
  });
}
