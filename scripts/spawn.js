// Runs a program in the place of this process: as this process where Node can do so, else as its only child.
import { spawn } from 'node:child_process';

/**
 * Never returns. Where Node can (22.15 or newer, not on Windows), this process becomes the program: same number, streams and
 * folder, and signals reach it without a process in between. Under npm a child is started: npm gives its signals to a shell, which
 * dies of them and tells no one, so that someone has to watch.
 */
export function become(executable, args, { env = process.env, cwd = process.cwd() } = {}) {
  const isUnderNpm = process.env.npm_lifecycle_event !== undefined;
  if (process.execve === undefined || process.platform === 'win32' || isUnderNpm) {
    startChild(executable, args, { env, cwd }, isUnderNpm);
    return;
  }
  process.chdir(cwd);
  process.execve(executable, [executable, ...args], env);
}

/** Streams are its own, signals are passed on, and it is ended with: by its code, or 128 + signal as a shell does. */
function startChild(executable, args, options, isUnderNpm) {
  const child = spawn(executable, args, { stdio: 'inherit', ...options });
  for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  // A terminal's Ctrl-C reaches the child by itself: passed on as well, it would count as the second signal.
  process.on('SIGINT', () => {
    if (!process.stdin.isTTY) child.kill('SIGINT');
  });
  // Who is no longer waited for is to end.
  if (isUnderNpm) {
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
