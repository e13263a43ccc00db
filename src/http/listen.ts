import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type Koa from 'koa';
import { ConfigError } from '../domain/config-value.ts';
import { answerMalformedRequests } from './malformed-request.ts';

export interface ListenOptions {
  host: string;
  /** 0 takes any free port. */
  port: number;
  /** The environment variable that named the port, for the message when the address cannot be had. */
  variable: string;
  /** Milliseconds for a client to send its headers, and then its body. */
  headersTimeoutMs: number;
  bodyTimeoutMs: number;
  /** Milliseconds for a client to take a piece of the answer that waits for it. */
  stallTimeoutMs: number;
}

export interface Listener {
  /** Where it listens, as a URL without a final slash. */
  readonly origin: string;
  /** Stops accepting, waits for what runs, at most `graceMs`, then ends the rest, and waits until its calls are settled. */
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
function explained(error: Error, { variable, host, port }: ListenOptions): Error {
  const fault = FAULTS['code' in error ? String(error.code) : ''];
  return fault === undefined ? error : new ConfigError(`${variable}: cannot listen on ${host}:${port}: ${fault}.`);
}

function listening(server: Server, options: ListenOptions): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    const refused = (error: Error): void => reject(explained(error, options));
    server.once('error', refused);
    server.listen(options.port, options.host, () => {
      server.off('error', refused);
      const address = server.address();
      if (address === null || typeof address === 'string') reject(new Error('not a network listener'));
      else resolve(address);
    });
  });
}

/** A client that takes nothing of what waits for it has left in all but name: it may not hold a place for ever. */
function cutStalledClients(server: Server, afterMs: number): void {
  server.timeout = afterMs;
  server.on('request', (_request, response) => {
    response.on('timeout', (socket) => {
      if (socket.writableLength > 0) socket.destroy();
      else socket.setTimeout(afterMs); // it is we who have nothing to say yet
    });
  });
}

/** Longer than it takes to settle a call whose connection was ended: to count its tokens has ten seconds. */
const SETTLING_MS = 15_000;

/** Serves an app. @throws ConfigError when the address cannot be had */
export async function listen<State>(app: Koa<State>, options: ListenOptions): Promise<Listener> {
  const handle = app.callback();
  const handled = new Set<Promise<void>>();
  const server = createServer(
    {
      headersTimeout: options.headersTimeoutMs,
      requestTimeout: options.headersTimeoutMs + options.bodyTimeoutMs,
      connectionsCheckingInterval: 1000,
      // The host check refuses a request without `Host` too, in the envelope.
      requireHostHeader: false,
    },
    (request, response) => {
      const done = handle(request, response);
      handled.add(done);
      void done.finally(() => handled.delete(done));
    },
  );
  answerMalformedRequests(server);
  cutStalledClients(server, options.stallTimeoutMs);
  const address = await listening(server, options);
  return {
    origin: originOf(address),
    async close(graceMs) {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      // A connection that has its answer is idle: the client would keep it for seconds more.
      const sweeping = setInterval(() => server.closeIdleConnections(), 50);
      const ending = setTimeout(() => server.closeAllConnections(), graceMs);
      await closed;
      clearInterval(sweeping);
      clearTimeout(ending);
      // Connections are gone before those who served them know; what they settle with must not be closed before them.
      await Promise.race([Promise.allSettled(handled), sleep(SETTLING_MS, undefined, { ref: false })]);
    },
  };
}
