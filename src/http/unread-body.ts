import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';

/** For how long, and for how many bytes, a client may go on sending what nobody wants, so that it comes to read its answer. */
const LINGER_MS = 1000;
const LINGER_BYTES = 1024 * 1024;

/**
 * Ends a connection whose client may still be sending. Were it closed at once, the system would answer what comes with a reset, which
 * can take the answer from the client: so a little more is read, unparsed, and dropped.
 */
export function endLingering(socket: Socket): void {
  let left = LINGER_BYTES;
  socket.removeAllListeners('data');
  socket.on('data', (chunk: Buffer) => {
    left -= chunk.length;
    if (left <= 0) socket.pause();
  });
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
 * Before an answer: if all of its request has not come, what is left of it is not read, and the connection ends with the answer. What
 * came together with the headers is there a turn of the event loop later.
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
