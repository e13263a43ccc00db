import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { once } from 'node:events';

const STOP_MS = 5_000;
const MAX_TEXT = 65_536;
const children = new Set<ChildProcess>();

const isRunning = (child: ChildProcess): boolean => child.exitCode === null && child.signalCode === null;

/** Starts a process that does not outlive this one: it is stopped by `stopChildren`, and killed should we exit without. */
export function startChild(command: string, args: readonly string[], options: SpawnOptions): ChildProcess {
  const child = spawn(command, args, options);
  children.add(child);
  child.on('error', () => children.delete(child));
  child.on('exit', () => children.delete(child));
  return child;
}

async function stop(child: ChildProcess): Promise<void> {
  if (!isRunning(child)) return;
  const exit = once(child, 'exit');
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
  child.kill('SIGTERM');
  await exit;
  clearTimeout(timer);
}

/** Ends every child, gently for five seconds, and waits for it. */
export async function stopChildren(): Promise<void> {
  await Promise.all([...children].map(stop));
}

process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL');
});

/**
 * The first match of each pattern in what a child prints on stdout, once all are there. What comes later is read and dropped,
 * so that the child never blocks. Rejects when the child ends without, or does not print it in time.
 */
export async function awaitOutput(child: ChildProcess, patterns: readonly RegExp[], waitMs: number): Promise<string[]> {
  const { stdout } = child;
  if (stdout === null) throw new Error('the child has no stdout to read');
  let text = '';
  const { promise, resolve, reject } = Promise.withResolvers<string[]>();
  const timer = setTimeout(
    () => reject(new Error(`a child did not say what was expected within ${waitMs} ms`)),
    waitMs,
  );
  child.once('error', reject);
  child.once('close', (code) => reject(new Error(`a child ended with ${code} before it said what was expected`)));
  const look = (chunk: Buffer): void => {
    text = (text + chunk.toString('latin1')).slice(-MAX_TEXT);
    const found = patterns.flatMap((pattern) => pattern.exec(text)?.[0] ?? []);
    if (found.length === patterns.length) resolve(found);
  };
  stdout.on('data', look);
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    stdout.off('data', look).resume();
  }
}
