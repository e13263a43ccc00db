import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

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

/** An answer that comes before all of its request has: what is left of the request is not read, and its connection ends. */
export function leaveUnread(req: IncomingMessage, res: ServerResponse): void {
  const { socket } = req;
  res.setHeader('connection', 'close');
  // What Node calls when the last answer of a connection has been sent; its own would close the connection at once.
  socket.destroySoon = () => endLingering(socket);
}
