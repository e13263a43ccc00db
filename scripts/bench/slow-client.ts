import { connect } from 'node:net';

const BITE_BYTES = 1024;

export interface SlowClient {
  /** Bytes read so far. */
  readonly read: number;
  leave(): void;
}

/**
 * Sends a raw request, and reads the answer a kilobyte at a time with so many milliseconds in between; never, where that is
 * Infinity.
 */
export function startSlowClient(port: number, request: string, pauseMs: number): SlowClient {
  let read = 0;
  let timer: NodeJS.Timeout | undefined;
  const buffer = Buffer.allocUnsafe(BITE_BYTES);
  const callback = (length: number): boolean => {
    read += length;
    if (pauseMs < Number.POSITIVE_INFINITY) timer = setTimeout(() => socket.resume(), pauseMs);
    return false;
  };
  const socket = connect({ port, host: '127.0.0.1', onread: { buffer, callback } });
  socket.on('error', () => {}); // The gateway may cut a client that takes nothing.
  socket.write(request, 'latin1');
  return {
    get read() {
      return read;
    },
    leave() {
      clearTimeout(timer);
      socket.destroy();
    },
  };
}
