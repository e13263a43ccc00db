import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';

/** The two kinds of call: an answer that comes whole, and one that comes as a stream of chunks. */
export const KINDS = ['whole', 'streamed'] as const;
export type Kind = (typeof KINDS)[number];

/** One request that has arrived, and the connection on which it is answered, byte by byte. */
export interface FaultExchange {
  readonly kind: Kind;
  /** Resolves when the bytes have left, and also when nobody takes them any more. */
  write(bytes: string | Buffer): Promise<void>;
  /** Hangs up when what was written has left. */
  cut(): Promise<void>;
  /** Drops the connection with a reset. */
  reset(): void;
  /** Whether the other side, or this one, has given the connection up. */
  readonly isClosed: boolean;
  readonly closed: Promise<void>;
}

/** How the server fails; it says nothing more once this has returned, and leaves the connection as it is. */
export type Fault = (exchange: FaultExchange) => void | Promise<void>;

/** An upstream over bare TCP, so that it can also say what no HTTP server would. */
export interface FaultServer {
  readonly origin: string;
  /** Every exchange since `begin`, oldest first. */
  readonly exchanges: readonly FaultExchange[];
  /** Answers every request from now on with `fault`. */
  begin(fault: Fault): void;
  /** Stops listening: connections are refused, those that stand are cut. */
  down(): Promise<void>;
  /** Listens again, on the same port. */
  up(): Promise<void>;
  close(): Promise<void>;
}

const HEAD_END = '\r\n\r\n';

interface Unread {
  bytes: Buffer;
}

/** Takes whole requests, their bodies alone, off the front of what has arrived. */
function* requestsIn(buffer: Unread): Generator<string, void, undefined> {
  for (;;) {
    const headEnd = buffer.bytes.indexOf(HEAD_END);
    if (headEnd === -1) return;
    const head = buffer.bytes.toString('latin1', 0, headEnd);
    const end = headEnd + HEAD_END.length + Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0);
    if (buffer.bytes.length < end) return;
    const body = buffer.bytes.toString('utf8', headEnd + HEAD_END.length, end);
    buffer.bytes = buffer.bytes.subarray(end);
    yield body;
  }
}

function openExchange(socket: Socket, closed: Promise<void>, body: string): FaultExchange {
  return {
    kind: JSON.parse(body).stream === true ? 'streamed' : 'whole',
    closed,
    get isClosed() {
      return socket.destroyed;
    },
    write: (bytes) =>
      Promise.race([closed, new Promise<void>((written) => socket.write(bytes, () => written()))]).then(
        () => undefined,
      ),
    async cut() {
      socket.end();
      await closed;
    },
    reset: () => socket.resetAndDestroy(),
  };
}

export async function startFaultServer(): Promise<FaultServer> {
  let reply: Fault = () => undefined;
  let exchanges: FaultExchange[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    const buffer: Unread = { bytes: Buffer.alloc(0) };
    const { promise: closed, resolve } = Promise.withResolvers<void>();
    socket.on('close', () => {
      sockets.delete(socket);
      resolve();
    });
    socket.on('error', () => socket.destroy());
    socket.on('data', (bytes: Buffer) => {
      buffer.bytes = Buffer.concat([buffer.bytes, bytes]);
      for (const body of requestsIn(buffer)) {
        const exchange = openExchange(socket, closed, body);
        exchanges.push(exchange);
        void reply(exchange);
      }
    });
  });
  let port = 0;
  const up = async (): Promise<void> => {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('no port');
    port = address.port;
  };
  const down = async (): Promise<void> => {
    const closed = once(server, 'close');
    server.close();
    for (const socket of sockets) socket.destroy();
    await closed;
  };
  await up();
  return {
    origin: `http://127.0.0.1:${port}`,
    get exchanges() {
      return exchanges;
    },
    begin(next) {
      reply = next;
      exchanges = [];
    },
    down,
    up,
    close: down,
  };
}
