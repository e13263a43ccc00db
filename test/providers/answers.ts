import { readFileSync } from 'node:fs';
import { type Mapping, TEXT_ONLY } from '../../src/domain/model.ts';
import { LongTexts, type ParsedJson } from '../../src/net/event-stream.ts';
import {
  type GatheredResponse,
  gatheredResponse,
  type ResponseHeaders,
  type StreamedResponse,
} from '../../src/net/exchange.ts';
import { openAiAdapter } from '../../src/providers/openai/openai.ts';
import type { UpstreamChunk } from '../../src/providers/wire/adapter.ts';

export const sample = (name: string): string => readFileSync(new URL(`./samples/${name}`, import.meta.url), 'utf8');

export const gathered = (text: string, status = 200, headers: ResponseHeaders = {}): GatheredResponse =>
  gatheredResponse(status, headers, Buffer.from(text));

/** As another thread parses an event. */
export const parseLarge = async (json: Buffer): Promise<ParsedJson> => ({
  json: JSON.parse(String(json)),
  longTexts: new Map(),
});

/** A mapping of a provider, of which nothing is known but what is given. */
export const mappingOf = (providerId: string, more: Partial<Mapping> = {}): Mapping => ({
  ...TEXT_ONLY,
  id: `${providerId}/m`,
  providerId,
  modelId: 'm',
  externalId: 'm-2026',
  custom: false,
  names: ['m'],
  providerNames: [providerId],
  prices: {},
  freeFlag: false,
  ...more,
});

/** A stream of these texts, one chunk each, and a count of how often it was drained. */
export function streamed(...texts: string[]): StreamedResponse & { drained: number } {
  const response = {
    kind: 'streamed' as const,
    status: 200,
    headers: {},
    means: { maxEventBytes: 1 << 24, room: () => {}, parseLarge },
    longTexts: new LongTexts(),
    drained: 0,
    chunks: (async function* () {
      for (const text of texts) yield Buffer.from(text);
    })(),
    drain() {
      response.drained += 1;
    },
  };
  return response;
}

export async function readStream(response: StreamedResponse): Promise<UpstreamChunk[]> {
  const chunks: UpstreamChunk[] = [];
  for await (const chunk of openAiAdapter.parseStream(response)) chunks.push(chunk);
  return chunks;
}

/** A stream of these chunks, then `[DONE]`. */
export const chunksOf = (...chunks: unknown[]): string =>
  [...chunks.map((chunk) => JSON.stringify(chunk)), '[DONE]'].map((data) => `data: ${data}\n\n`).join('');
