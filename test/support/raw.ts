import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

/** A connection on which a test writes what no HTTP client would. */
export interface RawConnection {
  readonly socket: Socket;
  /** All that has come back so far. */
  text(): string;
  /** Resolves when what has come back matches. @throws Error when the connection ends before */
  said(awaited: RegExp): Promise<string>;
  /** Resolves with all that came back when the connection has ended, however it did. */
  readonly ended: Promise<string>;
}

/** Connects, writes, and gathers what comes back. */
export async function openRaw(origin: string, bytes: string | Buffer = ''): Promise<RawConnection> {
  const socket = connect(Number(new URL(origin).port), '127.0.0.1');
  let text = '';
  socket.on('error', () => {});
  socket.setEncoding('latin1').on('data', (piece: string) => {
    text += piece;
  });
  const ended = new Promise<string>((resolve) => {
    socket.on('end', () => socket.end());
    socket.on('close', () => resolve(text));
  });
  await once(socket, 'connect');
  if (bytes.length > 0) socket.write(bytes);
  return {
    socket,
    text: () => text,
    async said(awaited) {
      while (!awaited.test(text)) {
        const gone = await Promise.race([once(socket, 'data').then(() => false), ended.then(() => true)]);
        if (gone && !awaited.test(text)) throw new Error(`ended early: ${text}`);
      }
      return text;
    },
    ended,
  };
}

/** The head of a request, its lines as they are given. */
export const head = (requestLine: string, ...headers: string[]): string =>
  [`${requestLine} HTTP/1.1`, 'Host: localhost', ...headers, '', ''].join('\r\n');

/** Everything written at once on a connection of its own, and what came back until its end. */
export const raw = async (origin: string, bytes: string | Buffer): Promise<string> =>
  (await openRaw(origin, bytes)).ended;
