import type { IncomingHttpHeaders } from 'node:http';
import { request } from 'node:http';
import { request as requestOverTls } from 'node:https';

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** The parsed body; undefined when it is no JSON. */
  readonly json: unknown;
}

export interface Sent {
  readonly method?: string;
  readonly path?: string;
  /** Pairs in the order sent, so that a name can stand twice. */
  readonly headers?: readonly (readonly [string, string])[];
  readonly body?: string | Buffer;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** One request, its headers exactly as given (and `Host`), on a connection of its own. */
export function send(origin: string, { method = 'GET', path = '/', headers = [], body }: Sent): Promise<Answer> {
  const { hostname, port, host, protocol } = new URL(origin);
  const begin = protocol === 'https:' ? requestOverTls : request;
  const named = new Set(headers.map(([name]) => name.toLowerCase()));
  const all = named.has('host') ? [...headers] : [['Host', host] as const, ...headers];
  if (body !== undefined && !named.has('content-length') && !named.has('transfer-encoding')) {
    all.push(['Content-Length', String(Buffer.byteLength(body))]);
  }
  return new Promise((resolve, reject) => {
    const outgoing = begin({ hostname, port, method, path, headers: all.flat(), agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString('utf8');
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text, json: parsed(text) });
      });
    });
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}
