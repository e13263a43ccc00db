import { createInterface } from 'node:readline/promises';

/** Asks on a terminal; where there is none, nobody agrees. */
export async function confirm(
  question: string,
  input: NodeJS.ReadableStream & { readonly isTTY?: boolean } = process.stdin,
  output: NodeJS.WritableStream & { readonly isTTY?: boolean } = process.stderr,
): Promise<boolean> {
  if (!input.isTTY || !output.isTTY) return false;
  const terminal = createInterface({ input, output });
  try {
    return /^y(es)?$/i.test((await terminal.question(`${question} [y/N] `)).trim());
  } finally {
    terminal.close();
  }
}
