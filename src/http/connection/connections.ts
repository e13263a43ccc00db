import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { ApiError } from '../../domain/errors.ts';
import { handedOver, unacknowledged } from './send-queue.ts';
import { dropIncoming } from './unread-body.ts';

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
  /** Bytes that the system had taken at the last look, if there was something to take, and those that were on their way then. */
  handedOver: number | undefined;
  unacknowledged: number | undefined;
  /** Looks in a row at which the client had taken nothing. */
  looks: number;
}

/** True while a request that has arrived whole is unanswered. */
const isAwaited = ({ served, waiting }: Connection): boolean =>
  [...served, ...waiting].some(({ req, writableFinished }) => req.complete && !writableFinished);

/** The same of an answer that has begun, whether its request has arrived whole or not. */
const owesAnswer = (connection: Connection): boolean =>
  isAwaited(connection) ||
  connection.served.some(({ headersSent, writableFinished }) => headersSent && !writableFinished);

/** Says in the only answer of a connection that the connection ends with it. */
function announceEnd({ served, waiting }: Connection): void {
  const [only, ...more] = [...served, ...waiting];
  if (more.length === 0 && only?.headersSent === false) only.setHeader('connection', 'close');
}

/** The connections of one listener, and what each of them may take of it. */
export class Connections {
  readonly #handle: Handle;
  readonly #open = new Map<Socket, Connection>();
  readonly #looking: NodeJS.Timeout;
  #waiting = 0;
  #isLooking = false;
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
    this.#looking = setInterval(() => void this.#look(), Math.max(1, stallMs / LOOKS)).unref();
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
      handedOver: undefined,
      unacknowledged: undefined,
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

  /** Cuts each client that takes nothing of what waits for it: it has left in all but name, and must not keep its places. */
  async #look(): Promise<void> {
    if (this.#isLooking) return;
    const still = [...this.#open.values()].filter(isStill);
    if (still.length === 0) return;
    this.#isLooking = true;
    const unacknowledgedNow = await unacknowledged(still.map(({ socket }) => socket));
    for (const [index, connection] of still.entries()) {
      const now = unacknowledgedNow[index];
      const hasTaken = now !== undefined && connection.unacknowledged !== undefined && now < connection.unacknowledged;
      connection.looks = hasTaken ? 0 : connection.looks + 1;
      connection.unacknowledged = now;
      if (connection.looks >= LOOKS) connection.socket.destroy();
    }
    this.#isLooking = false;
  }
}

/** True if something waits for the client, and the system has taken none of it since the last look. */
function isStill(connection: Connection): boolean {
  const { socket } = connection;
  const taken = socket.writableLength === 0 ? undefined : handedOver(socket);
  if (taken !== undefined && taken === connection.handedOver) return true;
  connection.handedOver = taken;
  connection.unacknowledged = undefined;
  connection.looks = 0;
  return false;
}

/** Refuses a request that comes while the listener closes, on a connection that still waits for an answer. */
function refuse(response: ServerResponse): void {
  const fault = new ApiError(503, 'overloaded', 'The gateway is stopping. Try again shortly.');
  const headers = { 'content-type': 'application/json; charset=utf-8', 'retry-after': '1', connection: 'close' };
  response.writeHead(fault.status, headers).end(JSON.stringify(fault.envelope()));
}
