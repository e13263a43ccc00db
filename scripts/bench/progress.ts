export interface Progress {
  /** Shows what is being done; on a terminal in place, elsewhere not at all. */
  say(text: string): void;
  /** Clears the line. */
  end(): void;
}

const CLEAR_LINE = '\r\u001b[2K';

export function createProgress(output: NodeJS.WriteStream): Progress {
  if (!output.isTTY) return { say: () => {}, end: () => {} };
  return {
    say: (text) => void output.write(`${CLEAR_LINE}${text}`),
    end: () => void output.write(CLEAR_LINE),
  };
}
