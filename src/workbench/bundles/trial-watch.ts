import { writeSync } from 'node:fs';

/** The thread that watches over the process of a trial, whose own thread may never answer again. */

const MAX_MB = 768;
const EVERY_MS = 20;

const parent = process.ppid;

setInterval(() => {
  const isGreedy = process.memoryUsage.rss() > MAX_MB * 1024 * 1024;
  if (isGreedy) writeSync(2, `\nit took more than ${MAX_MB} MB of memory\n`);
  // Nobody waits for the verdict once the parent has ended.
  if (isGreedy || process.ppid !== parent) process.kill(process.pid, 'SIGKILL');
}, EVERY_MS);
