// The fake upstreams: each judges what it is sent, and answers as the call's own step has chosen.
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { WireFormat } from '../../../src/domain/provider.ts';
import { Random } from '../../crash/random.ts';
import { goodAnswer } from './answers.ts';
import { good } from './exchange.ts';
import { FAULTS } from './faults.ts';
import { type Caller, faultsOf, type UpstreamRequest } from './oracle.ts';

/** A call on its way, by the mark in its prompt. */
export interface Marked extends Caller {
  /** By name; undefined: upstreams answer it well. */
  readonly fault: string | undefined;
  /** Of the upstreams' choices. */
  readonly seed: number;
  /** The request id is the mark too: its row can be found by it. */
  readonly isNamed: boolean;
  /** Requests at upstreams so far. */
  attempts: number;
}

export interface Watch {
  /** The call that a text belongs to, if it can be told. */
  callIn(text: string): { readonly mark: string; readonly call: Marked } | undefined;
  dispatched(mark: string, call: Marked): void;
  /** Something reached an upstream that must not. */
  broken(fault: string, request: UpstreamRequest, mark: string | undefined): void;
  /** Whose secret the text holds that this upstream must not have. */
  foreignSecretIn(text: string, provider: string): string | undefined;
}

export interface Upstream {
  readonly origin: string;
  close(): Promise<void>;
}

/** Of a body: larger ones are let go, for the product takes no larger ones. */
const MOST_BYTES = 32_000_000;

async function read(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += chunk.length;
    if (bytes <= MOST_BYTES) chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function parsed(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return value;
  } catch {
    return undefined;
  }
}

async function serve(
  provider: string,
  wire: WireFormat,
  watch: Watch,
  incoming: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const text = await read(incoming);
  const request: UpstreamRequest = {
    provider,
    wire,
    path: incoming.url ?? '',
    headers: incoming.headers,
    body: parsed(text),
  };
  const found = watch.callIn(text);
  for (const fault of faultsOf(request, found?.call)) watch.broken(fault, request, found?.mark);
  const secret = watch.foreignSecretIn(`${JSON.stringify(incoming.headers)} ${text}`, provider);
  if (secret !== undefined) watch.broken(`the secret of ${secret}`, request, found?.mark);
  if (found !== undefined) watch.dispatched(found.mark, found.call);
  const random = new Random(found === undefined ? 1 : found.call.seed + found.call.attempts++);
  const fault = found?.call.fault === undefined ? undefined : FAULTS[found.call.fault];
  const heard = `${incoming.headers.authorization ?? incoming.headers['x-api-key'] ?? incoming.headers['x-goog-api-key'] ?? ''} ${text.slice(0, 3000)}`;
  await (fault ?? good)({ response, random, answer: goodAnswer(request, random), heard });
}

/** An upstream on loopback that the product takes for this provider. */
export async function startUpstream(provider: string, wire: WireFormat, watch: Watch): Promise<Upstream> {
  const server = createServer((incoming, response) => {
    response.on('error', () => undefined);
    serve(provider, wire, watch, incoming, response).catch((error: unknown) => {
      // The product may leave in the middle of its own request.
      if (!incoming.destroyed && !response.destroyed) throw error;
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return {
    origin: `http://127.0.0.1:${address.port}`,
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
