import type { Server } from 'node:http';

/** Long enough that no kept-alive connection is closed between two measurements. */
const KEEP_ALIVE_MS = 120_000;

/** Listens on a free loopback port, prints it as one line on stdout, and ends the process when its parent goes away. */
export function serve(server: Server): void {
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  server.listen(0, '127.0.0.1', () => {
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('the server has no port');
    process.stdout.write(`${address.port}\n`);
  });
  process.stdin.on('end', () => process.exit(0)).resume();
}
