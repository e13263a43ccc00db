import type { Socket } from 'node:net';

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
