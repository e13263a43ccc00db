import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import { type AddressInfo, Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type Koa from 'koa';
import { ConfigError } from '../config/variables.ts';
import { ApiError, invalidRequest } from '../domain/errors.ts';
import { newId } from '../domain/id.ts';
import { entryOf } from '../lib/text.ts';
import { Acceptors, Connections, endLingering } from './connections.ts';

interface ListenOptions {
  host: string;
  /** 0 takes any free port. */
  port: number;
  /** The environment variable that named the port, for the message when the address cannot be had. */
  variable: string;
  /** Milliseconds for a client to send its headers, and then its body. */
  headersTimeoutMs: number;
  bodyTimeoutMs: number;
  /** Milliseconds after which a client is cut that takes nothing of the answer that waits for it. */
  stallTimeoutMs: number;
}

export interface Listener {
  /** Where it listens, as a URL without a final slash. */
  readonly origin: string;
  /**
   * Stops accepting and ends at once what is idle or has not sent its request whole; waits for the rest, at most `graceMs`, ends it,
   * and waits until its calls are settled.
   */
  close(graceMs: number): Promise<void>;
}

const originOf = ({ address, port, family }: AddressInfo): string =>
  `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;

const FAULTS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'the address is in use',
  EACCES: 'this account may not use the port',
  EADDRNOTAVAIL: 'this machine does not have the address',
  ENOTFOUND: 'the host is unknown',
};

/** What keeps a listener from its address, in one line that names the variable. */
function explained(error: unknown, { variable, host, port }: ListenOptions): unknown {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const fault = entryOf(FAULTS, code);
  return fault === undefined ? error : new ConfigError(`${variable}: cannot listen on ${host}:${port}: ${fault}.`);
}

/** Longer than it takes to settle a call whose connection was ended: to count its tokens has ten seconds. */
const SETTLING_MS = 15_000;

/** The request line and all headers, in bytes; more is 431. */
const MAX_HEADER_BYTES = 16 * 1024;

function createHttpServer({ headersTimeoutMs, bodyTimeoutMs }: ListenOptions): Server {
  return createServer({
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: headersTimeoutMs,
    // Counted from the start of the request, its headers included.
    requestTimeout: Math.max(headersTimeoutMs, bodyTimeoutMs),
    connectionsCheckingInterval: 1000,
    // The host check refuses a request without `Host` too, in the envelope.
    requireHostHeader: false,
  });
}

/** Serves an app. @throws ConfigError when the address cannot be had */
export async function listen<State>(app: Koa<State>, options: ListenOptions): Promise<Listener> {
  const serve = app.callback();
  const handled = new Set<Promise<void>>();
  const handle = (request: IncomingMessage, response: ServerResponse): void => {
    const done = serve(request, response);
    handled.add(done);
    void done.finally(() => handled.delete(done));
  };
  const server = createHttpServer(options);
  const connections = new Connections(server, handle, options.stallTimeoutMs);
  answerMalformedRequests(server, connections);
  const acceptors = new Acceptors(server);
  const address = await acceptors.listen(options.host, options.port).catch((error: unknown) => {
    throw explained(error, options);
  });
  return {
    origin: originOf(address),
    async close(graceMs) {
      const closed = acceptors.close();
      connections.close();
      const ending = setTimeout(() => connections.destroy(), graceMs);
      await closed;
      clearTimeout(ending);
      connections.destroy();
      // Connections are gone before those who served them know; what they settle with must not be closed before them.
      await Promise.race([Promise.allSettled(handled), sleep(SETTLING_MS, undefined, { ref: false })]);
    },
  };
}

/** What Node's HTTP parser found wrong, by its code, as an answer of ours. */
function faultOf(error: Error): ApiError {
  switch ('code' in error ? error.code : undefined) {
    case 'HPE_HEADER_OVERFLOW':
      return new ApiError(431, 'request_too_large', 'The headers of the request are too large.');
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return new ApiError(413, 'request_too_large', 'The chunk extensions of the request are too large.');
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new ApiError(408, 'request_timeout', 'The request did not arrive in time.');
    default:
      return invalidRequest('The request is not well-formed HTTP.');
  }
}

function answerOf(fault: ApiError): string {
  const body = JSON.stringify(fault.envelope());
  return [
    `HTTP/1.1 ${fault.status} ${STATUS_CODES[fault.status]}`,
    'content-type: application/json; charset=utf-8',
    `content-length: ${Buffer.byteLength(body)}`,
    `x-request-id: ${newId('req')}`,
    'connection: close',
    '',
    body,
  ].join('\r\n');
}

/**
 * Answers what never becomes a request in the envelope too, and ends its connection. A connection that owes another
 * answer ends with that instead: the client would take ours for a part of it.
 */
function answerMalformedRequests(server: Server, connections: Connections): void {
  server.on('clientError', (error, stream) => {
    if (!(stream instanceof Socket)) return;
    if (connections.endWithAnswers(stream)) return;
    if (!stream.writable) {
      stream.destroy();
      return;
    }
    stream.write(answerOf(faultOf(error)));
    endLingering(stream);
  });
}
