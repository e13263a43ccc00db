import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import {
  type AddressInfo,
  createServer as createTcpServer,
  type ListenOptions,
  Socket,
  type Server as TcpServer,
} from 'node:net';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import type Koa from 'koa';
import { ConfigError } from '../config/variables.ts';
import { ApiError, invalidRequest } from '../domain/errors.ts';
import { newId } from '../domain/id.ts';
import { entryOf } from '../lib/text.ts';

/** Requests of one connection that are served at once; those pipelined behind them wait. */
const MOST_SERVED = 32;
/** Requests that wait on all connections together; a connection that brings more of them ends. One read can bring 3,600. */
const MOST_WAITING = 8192;
/** Bytes that are still read from a connection while its requests wait: only reading shows that a client has left. */
const READ_WHILE_WAITING = 64 * 1024;
/** Looks at each connection in the time after which a stalled client is cut: the cut comes at most one look late. */
const LOOKS = 8;

type Handle = (request: IncomingMessage, response: ServerResponse) => void;

interface Connection {
  readonly socket: Socket;
  /** Unanswered, in the order in which they came. */
  readonly served: ServerResponse[];
  readonly waiting: ServerResponse[];
  /** Bytes that had been read when the first of those that wait came. */
  readBefore: number;
  /** Nothing is read until they are served. */
  isHeld: boolean;
  /** It ends with the last answer that it owes. */
  isEnding: boolean;
  /** Bytes that the system had taken at the last look; undefined: nothing waited for the client then. */
  taken: number | undefined;
  /** Looks in a row at which the system had taken nothing more. */
  looks: number;
}

/** True while a request that has arrived whole is unanswered. */
const isAwaited = ({ served, waiting }: Connection): boolean =>
  [...served, ...waiting].some(({ req, writableFinished }) => req.complete && !writableFinished);

/** Whether an answer is awaited as above or has begun, whether its request has arrived whole or not. */
const owesAnswer = (connection: Connection): boolean =>
  isAwaited(connection) ||
  connection.served.some(({ headersSent, writableFinished }) => headersSent && !writableFinished);

/** Says in the only answer of a connection that the connection ends with it. */
function announceEnd({ served, waiting }: Connection): void {
  const [only, ...more] = [...served, ...waiting];
  if (more.length === 0 && only?.headersSent === false) only.setHeader('connection', 'close');
}

/** The connections of one listener, and what each of them may take of it. */
class Connections {
  readonly #handle: Handle;
  readonly #open = new Map<Socket, Connection>();
  readonly #looking: NodeJS.Timeout;
  #waiting = 0;
  #isClosing = false;

  /**
   * @param handle serves one request
   * @param stallMs milliseconds after which a client is cut that takes nothing of what waits for it
   */
  constructor(server: Server, handle: Handle, stallMs: number) {
    this.#handle = handle;
    server.on('connection', (socket) => this.#opened(socket));
    const arrived = (_request: IncomingMessage, response: ServerResponse): void => this.#arrived(response);
    server.on('request', arrived);
    // The client waits for permission to send its body: the step that reads the body gives it.
    server.on('checkContinue', arrived);
    // An expectation that we do not know is ignored, as RFC 9110 (10.1.1) allows; Node would answer 417 without a body.
    server.on('checkExpectation', arrived);
    this.#looking = setInterval(() => this.#look(), Math.max(1, stallMs / LOOKS)).unref();
  }

  /**
   * Ends a connection with the last answer that it owes; what else comes on it is dropped.
   * @returns false if it owes none, not even the rest of one: then it does not end, and something may be written to it
   */
  endWithAnswers(socket: Socket): boolean {
    const connection = this.#open.get(socket);
    if (connection === undefined || !owesAnswer(connection)) return false;
    connection.isEnding = true;
    dropIncoming(socket, READ_WHILE_WAITING);
    announceEnd(connection);
    return true;
  }

  /** Ends what is idle, and what has not sent all of its request; from now on a connection ends with its last answer. */
  close(): void {
    this.#isClosing = true;
    for (const connection of this.#open.values()) {
      if (isAwaited(connection)) announceEnd(connection);
      else connection.socket.destroy();
    }
  }

  destroy(): void {
    clearInterval(this.#looking);
    for (const socket of this.#open.keys()) socket.destroy();
  }

  #opened(socket: Socket): void {
    const connection: Connection = {
      socket,
      served: [],
      waiting: [],
      readBefore: 0,
      isHeld: false,
      isEnding: false,
      taken: undefined,
      looks: 0,
    };
    this.#open.set(socket, connection);
    // Node would read on with every answer.
    socket.on('resume', () => connection.isHeld && socket.pause());
    socket.on('close', () => {
      this.#open.delete(socket);
      this.#waiting -= connection.waiting.splice(0).length;
    });
  }

  #arrived(response: ServerResponse): void {
    const connection = this.#open.get(response.req.socket);
    if (connection === undefined || connection.socket.destroyed) return;
    if (this.#isClosing) refuse(response);
    else if (connection.served.length < MOST_SERVED) this.#serve(connection, response);
    else this.#hold(connection, response);
  }

  #serve(connection: Connection, response: ServerResponse): void {
    connection.served.push(response);
    response.on('close', () => this.#answered(connection, response));
    this.#handle(response.req, response);
  }

  #answered(connection: Connection, response: ServerResponse): void {
    const { socket, served, waiting } = connection;
    served.splice(served.indexOf(response), 1);
    if (socket.destroyed) return;
    if ((this.#isClosing || connection.isEnding) && !isAwaited(connection)) {
      socket.destroySoon();
      return;
    }
    const next = waiting.shift();
    if (next === undefined) return;
    this.#waiting -= 1;
    this.#serve(connection, next);
    if (waiting.length > 0 || !connection.isHeld) return;
    connection.isHeld = false;
    socket.resume();
  }

  #hold(connection: Connection, response: ServerResponse): void {
    const { socket, waiting } = connection;
    if (this.#waiting >= MOST_WAITING) {
      socket.destroy();
      return;
    }
    if (waiting.length === 0) connection.readBefore = socket.bytesRead;
    waiting.push(response);
    this.#waiting += 1;
    connection.isHeld = socket.bytesRead - connection.readBefore > READ_WHILE_WAITING;
    if (connection.isHeld) socket.pause();
  }

  /**
   * Cuts each client for which something waits and which takes nothing of it: it has left in all but name, and must not keep its
   * places. The system takes some megabytes ahead of a client, and more when the client has read about a third of them.
   */
  #look(): void {
    for (const connection of this.#open.values()) {
      const { socket } = connection;
      const taken = socket.writableLength === 0 ? undefined : socket.bytesWritten - socket.writableLength;
      connection.looks = taken !== undefined && taken === connection.taken ? connection.looks + 1 : 0;
      connection.taken = taken;
      if (connection.looks >= LOOKS) socket.destroy();
    }
  }
}

/** Refuses a request that comes while the listener closes, on a connection that still waits for an answer. */
function refuse(response: ServerResponse): void {
  const fault = new ApiError(503, 'overloaded', 'The gateway is stopping. Try again shortly.');
  const headers = { 'content-type': 'application/json; charset=utf-8', 'retry-after': '1', connection: 'close' };
  response.writeHead(fault.status, headers).end(JSON.stringify(fault.envelope()));
}

const departures = new WeakMap<Socket, AbortSignal>();

/** Aborted when a connection closes: one signal for all of its requests, since making one takes longer than most steps do. */
export function departureOf(socket: Socket): AbortSignal {
  const known = departures.get(socket);
  if (known !== undefined) return known;
  const departure = new AbortController();
  if (socket.closed) departure.abort();
  else socket.on('close', () => departure.abort());
  departures.set(socket, departure.signal);
  return departure.signal;
}

/** Time, and bytes, that a refused client may go on sending, so that it gets to read its answer. */
const LINGER_MS = 1000;
const LINGER_BYTES = 1024 * 1024;

/** Reads on without looking at what comes, `most` bytes of it: only reading shows that a client has left. */
function dropIncoming(socket: Socket, most: number): void {
  let left = most;
  socket.removeAllListeners('data');
  socket.on('data', (chunk: Buffer) => {
    left -= chunk.length;
    if (left <= 0) socket.pause();
  });
}

/**
 * Ends a connection whose client may still be sending. If it were closed at once, the system would answer further bytes with a reset,
 * and the client might lose the answer: so a little more is read, unparsed, and dropped.
 */
function endLingering(socket: Socket): void {
  dropIncoming(socket, LINGER_BYTES);
  socket.on('end', () => socket.destroy());
  socket.on('error', () => socket.destroy());
  const ending = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.on('close', () => clearTimeout(ending));
  socket.end();
  socket.resume();
}

const announcesBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0';

/**
 * Called before an answer. If the request has not come whole, the rest of it is not read, and the connection ends with the answer. A
 * body that came together with the headers is there one turn of the event loop later.
 */
export async function leaveUnread(req: IncomingMessage, res: ServerResponse): Promise<void> {
  if (!announcesBody(req)) return;
  await nextTurn();
  if (req.complete || res.headersSent) return;
  const { socket } = req;
  res.setHeader('connection', 'close');
  // Node calls this when the last answer of a connection has been sent; its own would close the connection at once.
  socket.destroySoon = () => endLingering(socket);
}

/**
 * Sockets that listen at one address. In each turn of the event loop libuv accepts one connection of a socket, so that behind forty
 * others a caller waited for forty turns, up to a second under attack. Linux deals connections out among several sockets; elsewhere
 * there is one.
 */
const SOCKETS = process.platform === 'linux' ? 8 : 1;

/** Accepts the connections of an HTTP server. */
class Acceptors {
  readonly #server: Server;
  /** As an HTTP server accepts. */
  readonly #others = Array.from({ length: SOCKETS - 1 }, () =>
    createTcpServer({ allowHalfOpen: true, noDelay: true }, (socket) => this.#server.emit('connection', socket)),
  );

  constructor(server: Server) {
    this.#server = server;
  }

  /** @param port 0 takes any free one. Rejects when the address cannot be had, or is in use. */
  async listen(host: string, port: number): Promise<AddressInfo> {
    if (SOCKETS === 1) return bind(this.#server, { host, port });
    // Sockets that share an address would also share it with those of another gateway: this one finds out whether there is one.
    const alone = createTcpServer();
    const free = await bind(alone, { host, port });
    await new Promise((resolve) => alone.close(resolve));
    const shared = { host, port: free.port, reusePort: true };
    const [address] = await Promise.all([this.#server, ...this.#others].map((each) => bind(each, shared)));
    return address ?? free;
  }

  /** Accepts no more; resolves when all connections have ended. */
  async close(): Promise<void> {
    await Promise.all(
      [this.#server, ...this.#others].map((each) => new Promise<void>((resolve) => each.close(() => resolve()))),
    );
  }
}

function bind(server: TcpServer, options: ListenOptions): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(options, () => {
      server.off('error', reject);
      const address = server.address();
      if (address === null || typeof address === 'string') reject(new Error('not a network listener'));
      else resolve(address);
    });
  });
}

interface ListenerOptions {
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
  /** Address of the listener, as a URL without a final slash. */
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

/** Error in one line, naming the variable, for a listener that cannot have its address. */
function explained(error: unknown, { variable, host, port }: ListenerOptions): unknown {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const fault = entryOf(FAULTS, code);
  return fault === undefined ? error : new ConfigError(`${variable}: cannot listen on ${host}:${port}: ${fault}.`);
}

/** Longer than it takes to settle a call whose connection was ended: to count its tokens has ten seconds. */
const SETTLING_MS = 15_000;

/** The request line and all headers, in bytes; more is 431. */
const MAX_HEADER_BYTES = 16 * 1024;

function createHttpServer({ headersTimeoutMs, bodyTimeoutMs }: ListenerOptions): Server {
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
export async function listen<State>(app: Koa<State>, options: ListenerOptions): Promise<Listener> {
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

/** Fault that Node's HTTP parser found, by its code, as an answer of ours. */
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
