import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { onTestFinished } from 'vitest';
import { childEnv } from '../support/network-guard-env.ts';

/** Another process that runs a script of test/store/children; killed at the latest when the test has ended. */
export async function startChild(script: string, args: readonly string[]) {
  const path = new URL(`children/${script}`, import.meta.url).pathname;
  const child = spawn(process.execPath, [path, ...args], { env: childEnv(), stdio: ['pipe', 'pipe', 'inherit'] });
  const closed = once(child, 'close');
  const kill = async (): Promise<void> => {
    child.kill('SIGKILL');
    await closed;
  };
  onTestFinished(kill);
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    kill,
    /** The next line that it prints. */
    line: async (): Promise<string> => {
      const { value, done } = await lines.next();
      return done === true ? '(the child has ended)' : value;
    },
    write: (line: string) => child.stdin.write(`${line}\n`),
  };
}
