const WIDTH = 30;
const CLEAR_LINE = '\r\u001b[2K';
/** Milliseconds between two drawings. */
const INTERVAL = 50;

export interface ProgressBar {
  /** Shows how far the work is; on a terminal in place, elsewhere not at all. */
  readonly show: (done: number, all: number) => void;
  /** Clears the line. */
  readonly end: () => void;
}

/** A progress bar on stderr, so that the output can be piped. */
export function progressBar(
  what: string,
  output: Pick<NodeJS.WriteStream, 'isTTY' | 'write'> = process.stderr,
): ProgressBar {
  if (!output.isTTY) return { show: () => {}, end: () => {} };
  let drawnAt = 0;
  return {
    show: (done, all) => {
      const now = performance.now();
      if (done < all && now - drawnAt < INTERVAL) return;
      drawnAt = now;
      const filled = Math.round((WIDTH * done) / all);
      output.write(`${CLEAR_LINE}${what} ${'█'.repeat(filled)}${'░'.repeat(WIDTH - filled)} ${done}/${all}`);
    },
    end: () => void output.write(CLEAR_LINE),
  };
}
