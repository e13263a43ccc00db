import { readFileSync } from 'node:fs';
import type { GatheredResponse, StreamedResponse } from '../../src/net/exchange.ts';
import type { UpstreamChunk } from '../../src/providers/adapter.ts';
import { openAiAdapter } from '../../src/providers/openai.ts';

export const sample = (name: string): string => readFileSync(new URL(`./samples/${name}`, import.meta.url), 'utf8');

export const gathered = (text: string, status = 200): GatheredResponse => ({
  kind: 'gathered',
  status,
  headers: {},
  text,
});

/** A stream of these texts, one chunk each, and a count of how often it was drained. */
export function streamed(...texts: string[]): StreamedResponse & { drained: number } {
  const response = {
    kind: 'streamed' as const,
    status: 200,
    headers: {},
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
