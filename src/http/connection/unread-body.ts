import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';

/** How long, and how many bytes, a refused client may go on sending, so that it gets to read its answer. */
const LINGER_MS = 1000;
const LINGER_BYTES = 1024 * 1024;

/** Reads on without looking at what comes, `most` bytes of it: only reading shows that a client has left. */
export function dropIncoming(socket: Socket, most: number): void {
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
export function endLingering(socket: Socket): void {
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
  // What Node calls when the last answer of a connection has been sent; its own would close the connection at once.
  socket.destroySoon = () => endLingering(socket);
}
