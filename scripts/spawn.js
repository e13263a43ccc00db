// Runs one child to its end as if it were this process: same streams, signals passed on, its exit code kept.
import { spawn } from 'node:child_process';

/** Never returns before the child has ended; exits with the child's code, or 128 + signal as a shell does. */
export function become(executable, args, options = {}) {
  const child = spawn(executable, args, { stdio: 'inherit', ...options });
  for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  // A terminal's Ctrl-C reaches the child by itself: passed on as well, it would count as the second signal.
  process.on('SIGINT', () => {
    if (!process.stdin.isTTY) child.kill('SIGINT');
  });
  // npm gives its signals to a shell in between, which dies of them and tells no one: whom no one waits for is to end.
  if (process.env.npm_lifecycle_event !== undefined) {
    const parent = process.ppid;
    setInterval(() => {
      if (process.ppid !== parent) child.kill('SIGTERM');
    }, 500).unref();
  }
  child.on('error', (error) => {
    process.stderr.write(`portcullis: cannot start ${executable}: ${error.message}\n`);
    process.exit(1);
  });
  child.on('exit', (code, signal) =>
    process.exit(code ?? 128 + ({ SIGHUP: 1, SIGINT: 2, SIGTERM: 15, SIGKILL: 9 }[signal] ?? 0)),
  );
}
