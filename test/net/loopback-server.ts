import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTcpServer, type Socket, type Server as TcpServer } from 'node:net';
import { onTestFinished } from 'vitest';

async function listen(server: Server | TcpServer, host: string): Promise<number> {
  server.listen(0, host);
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

/** An HTTP server for one test; gives its origin. */
export async function serve(handler: RequestListener): Promise<string> {
  const server = createServer(handler);
  const port = await listen(server, '127.0.0.1');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${port}`;
}

/** A TCP server for one test, for answers that no HTTP server would give. */
export async function serveRaw(handler: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createTcpServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    handler(socket);
  });
  const port = await listen(server, '127.0.0.1');
  onTestFinished(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return `http://127.0.0.1:${port}`;
}
