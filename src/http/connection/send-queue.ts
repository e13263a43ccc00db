import { readFile, readlink } from 'node:fs/promises';
import type { Socket } from 'node:net';

/** What Node keeps of a socket beneath its own buffers. Not documented, but what its own timeouts look at. */
function handleOf(socket: Socket, property: 'writeQueueSize' | 'fd'): number | undefined {
  const handle: unknown = Reflect.get(socket, '_handle');
  const value: unknown = typeof handle === 'object' && handle !== null ? Reflect.get(handle, property) : undefined;
  return typeof value === 'number' && value >= 0 ? value : undefined;
}

/** Bytes of what was written to the socket that the system has taken. */
export const handedOver = (socket: Socket): number =>
  socket.bytesWritten - socket.writableLength - (handleOf(socket, 'writeQueueSize') ?? 0);

/** Columns of Linux's table of connections. */
const [QUEUES, INODE] = [4, 9];

async function tableOf(file: string): Promise<[inode: string, unacknowledged: number][]> {
  const lines = (await readFile(file, 'latin1')).split('\n').slice(1);
  return lines.map((line) => {
    const columns = line
      .trim()
      .split(' ')
      .filter((column) => column !== '');
    return [columns[INODE] ?? '', Number.parseInt(columns[QUEUES] ?? '', 16)];
  });
}

/**
 * Bytes of each socket that the system has taken and that the client's has not: they shrink while a client reads, also while the system
 * takes nothing more for a while, which goes on for a megabyte. Undefined where this cannot be told: only Linux tells.
 */
export async function unacknowledged(sockets: readonly Socket[]): Promise<(number | undefined)[]> {
  const tables = await Promise.all(['/proc/net/tcp', '/proc/net/tcp6'].map((file) => tableOf(file).catch(() => [])));
  const byInode = new Map(tables.flat());
  return Promise.all(
    sockets.map(async (socket) => {
      const target = await readlink(`/proc/self/fd/${handleOf(socket, 'fd')}`).catch(() => '');
      return byInode.get(target.slice('socket:['.length, -1));
    }),
  );
}
