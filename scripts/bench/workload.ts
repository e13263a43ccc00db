import type { Target } from './target.ts';

/** The provider and the model that every request names, as the gateway knows them through `UPSTREAM_BENCH_…`. */
export const PROVIDER = 'bench';
export const MODEL = 'bench-model';

/** Deltas in a stream, the closing chunks not counted. */
export const STREAM_CHUNKS = 200;

/** The text of each delta. */
export const STREAM_TEXT = ' and so on';

/** What the upstream says that every answer used. */
export const USAGE = { prompt_tokens: 74, completion_tokens: 32, total_tokens: 106 };

/** The client's address as the gateway sees it: its IP rules let it pass. */
export const CLIENT_IP = '192.0.2.10';

export const CHAT_PATH = '/v1/chat/completions';

const BODY_BYTES = 300;
const DIGITS = 12;

/**
 * What is asked of the upstream: a whole answer; or a stream, of 200 chunks as fast as event-loop turns go, of 200 chunks so many
 * milliseconds apart, of so many chunks, each when the client asks for it, or one that never ends and goes as fast as it is taken.
 */
export type Kind = 'whole' | 'burst' | `every ${number} ms` | `${number} chunks, one by one` | 'endless';

/** A stream as a fast model gives it: 200 chunks in a second. */
export const PACED: Kind = 'every 5 ms';

/** A stream as a slow model gives it. */
export const SLOW: Kind = 'every 100 ms';

/** A request body cut where its number stands: where nothing else is wanted, no two requests of a run carry the same one. */
export interface BodyTemplate {
  readonly before: string;
  readonly digits: number;
  readonly after: string;
}

/** The request body of every target: 300 bytes of chat request, numbered. Its `user` tells the upstream what is wanted. */
export function bodyTemplate(kind: Kind): BodyTemplate {
  const marker = '#'.repeat(DIGITS);
  const make = (filler: string): string =>
    JSON.stringify({
      model: MODEL,
      messages: [
        { role: 'system', content: 'You are the keeper of a gate. Answer briefly.' },
        { role: 'user', content: `Traveller ${marker} asks: who may pass?${filler}` },
      ],
      temperature: 0.2,
      max_tokens: 64,
      ...(kind === 'whole' ? {} : { stream: true, user: kind }),
    });
  const text = make('.'.repeat(BODY_BYTES - make('').length));
  const at = text.indexOf(marker);
  return { before: text.slice(0, at), digits: DIGITS, after: text.slice(at + DIGITS) };
}

const NUMBERS_PER_PHASE = 100_000_000;
let phases = 0;

/** The first of a range of body numbers that nothing else in this run uses. */
export function claimNumbers(): number {
  phases += 1;
  return phases * NUMBERS_PER_PHASE;
}

/** Headers that every target gets, the gateway's key among them, so that all of them carry the same bytes. */
export const requestHeaders = (apiKey: string): Record<string, string> => ({
  'content-type': 'application/json',
  authorization: `Bearer ${apiKey}`,
  'x-forwarded-for': CLIENT_IP,
});

/** Makes the raw requests to one target, each with the next number, or all with the same where the bodies are to be equal. */
export function rawRequests({ port, equalBodies }: Target, apiKey: string, kind: Kind): () => string {
  const template = bodyTemplate(kind);
  const headers = { host: `127.0.0.1:${port}`, ...requestHeaders(apiKey), 'content-length': String(BODY_BYTES) };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const head = `POST ${CHAT_PATH} HTTP/1.1\r\n${lines.join('')}\r\n${template.before}`;
  let number = claimNumbers();
  return () => {
    if (!equalBodies) number += 1;
    return `${head}${String(number).padStart(template.digits, '0')}${template.after}`;
  };
}
