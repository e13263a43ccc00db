// A stream that has taken enough for now.
import type { Writable } from 'node:stream';

/** Resolves when the stream takes more, or is gone. */
export const drained = (stream: Writable): Promise<void> =>
  new Promise((resolve) => {
    const goOn = (): void => {
      stream.off('drain', goOn).off('close', goOn);
      resolve();
    };
    stream.once('drain', goOn).once('close', goOn);
  });
