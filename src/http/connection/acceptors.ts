import type { Server } from 'node:http';
import { type AddressInfo, createServer, type ListenOptions, type Server as TcpServer } from 'node:net';

/**
 * Sockets that listen at one address. In each turn of the event loop libuv accepts one connection of a socket, so that behind forty
 * others a caller waited for forty turns, up to a second under attack. Linux deals connections out among several sockets; elsewhere
 * there is one.
 */
const SOCKETS = process.platform === 'linux' ? 8 : 1;

/** Accepts the connections of an HTTP server. */
export class Acceptors {
  readonly #server: Server;
  /** As an HTTP server accepts. */
  readonly #others = Array.from({ length: SOCKETS - 1 }, () =>
    createServer({ allowHalfOpen: true, noDelay: true }, (socket) => this.#server.emit('connection', socket)),
  );

  constructor(server: Server) {
    this.#server = server;
  }

  /** @param port 0 takes any free one. Rejects when the address cannot be had, or is in use. */
  async listen(host: string, port: number): Promise<AddressInfo> {
    if (SOCKETS === 1) return bind(this.#server, { host, port });
    // Sockets that share an address would also share it with those of another gateway: this one finds out whether there is one.
    const alone = createServer();
    const free = await bind(alone, { host, port });
    await new Promise((resolve) => alone.close(resolve));
    const shared = { host, port: free.port, reusePort: true };
    const [address] = await Promise.all([this.#server, ...this.#others].map((each) => bind(each, shared)));
    return address ?? free;
  }

  /** Accepts no more; resolves when all connections have ended. */
  async close(): Promise<void> {
    await Promise.all(
      [this.#server, ...this.#others].map((each) => new Promise<void>((resolve) => each.close(() => resolve()))),
    );
  }
}

function bind(server: TcpServer, options: ListenOptions): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(options, () => {
      server.off('error', reject);
      const address = server.address();
      if (address === null || typeof address === 'string') reject(new Error('not a network listener'));
      else resolve(address);
    });
  });
}
