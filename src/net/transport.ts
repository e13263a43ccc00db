import { LRUCache } from 'lru-cache';
import { Client, type Dispatcher, Pool } from 'undici';
import type { Endpoint } from '../domain/address.ts';
import { getOrMake } from '../lib/collections.ts';
import { type AddressPolicy, createLookUps, guardedConnector, type LookUps } from './address-policy.ts';
import type { ParsedJson } from './event-stream.ts';
import { Connection, Exchange, type OutboundResponse } from './exchange.ts';
import { PARSER_HEADER_BYTES, type Room, TransportError } from './transport-error.ts';

export interface TransportOptions {
  /** Milliseconds until a connection (TLS included) must stand. */
  readonly connectTimeoutMs: number;
  /** Milliseconds from the sent request to the answer's headers. This and the next one are exact to about a second. */
  readonly firstByteTimeoutMs: number;
  /** Milliseconds between two pieces of the body, counted only while we read. */
  readonly idleTimeoutMs: number;
  /** Milliseconds from `send` to the last byte, waiting for a connection included. */
  readonly totalTimeoutMs: number;
  /** Bytes of a whole answer, or of one event of a stream; a stream in all may have four times as many. */
  readonly maxResponseBytes: number;
  /** Parses JSON of more than 64 KiB on another thread. @throws TransportError for what holds too much; ApiError 503 */
  readonly parseLarge: (json: Buffer, options: Pick<SendOptions, 'share' | 'signal'>) => Promise<ParsedJson>;
  /** Connections to one origin; further requests wait for one. */
  readonly maxConnections?: number;
  /** Hosts that requests to public addresses may reach although their address is private; default: none. */
  readonly privateExceptions?: readonly Endpoint[];
  /** Look-ups of names for requests to public addresses; default: its own. */
  readonly lookUps?: LookUps;
}

export interface OutboundRequest {
  /** Scheme, host and port. */
  readonly origin: string;
  /** Begins with `/`. */
  readonly path: string;
  readonly method: 'GET' | 'POST';
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Read a 2xx `text/event-stream` as it comes; any other answer is gathered. */
  readonly stream: boolean;
  readonly addresses: AddressPolicy;
}

export interface SendOptions {
  readonly signal: AbortSignal;
  /** On whose behalf: the organization that shares other threads with the others. */
  readonly share: string;
  readonly room: Room;
  /** Secret that the request carries: it is blotted out of a success that echoes it. */
  readonly secret?: string | undefined;
  /** Milliseconds for this exchange in place of the transport's own. */
  readonly totalTimeoutMs?: number;
}

export interface Transport {
  /**
   * One exchange: no redirect followed, nothing retried, no content encoding but identity.
   * @throws TransportError, or ApiError 503 where there is no room for the answer; so does the reader of a streamed body.
   */
  send(request: OutboundRequest, options: SendOptions): Promise<OutboundResponse>;
  /** Cuts every connection. */
  close(): Promise<void>;
}

const MAX_POOLS = 256;
const KEEP_ALIVE_MS = 10_000;

/** On whose behalf the last request to an origin was sent: its name is looked up for that share. */
interface Asker {
  share: string;
}

/** A connection that tells each exchange which one it runs on. */
class WatchedClient extends Client {
  readonly #connection: Connection;
  readonly #asker: Asker;

  constructor(origin: URL, options: Client.Options, connection: Connection, asker: Asker) {
    super(origin, options);
    this.#connection = connection;
    this.#asker = asker;
  }

  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    if (handler instanceof Exchange) {
      handler.connection = this.#connection;
      this.#asker.share = handler.share;
    }
    return super.dispatch(options, handler);
  }
}

/** The only way out of the process: kept-alive pools of connections, one for each origin and address policy. */
export function createTransport(options: TransportOptions): Transport {
  const pools = new LRUCache<string, Pool>({
    max: MAX_POOLS,
    dispose: (pool, _, reason) => {
      if (reason === 'evict') void pool.close(); // Calls that run on it may finish.
    },
  });

  const lookUps = options.lookUps ?? createLookUps(options.connectTimeoutMs);

  function open(origin: string, addresses: AddressPolicy): Pool {
    const asker: Asker = { share: '' };
    const connect = guardedConnector(addresses, {
      timeoutMs: options.connectTimeoutMs,
      exceptions: options.privateExceptions ?? [],
      resolve: lookUps(() => asker.share),
    });
    return new Pool(origin, {
      factory(url, clientOptions) {
        const connection = new Connection();
        return new WatchedClient(url, { ...clientOptions, connect: connection.watched(connect) }, connection, asker);
      },
      maxHeaderSize: PARSER_HEADER_BYTES,
      connections: options.maxConnections ?? 512,
      pipelining: 1,
      allowH2: false,
      headersTimeout: options.firstByteTimeoutMs,
      bodyTimeout: options.idleTimeoutMs,
      keepAliveTimeout: KEEP_ALIVE_MS,
    });
  }

  return {
    async send(request, sendOptions) {
      const { signal, room, share, secret, totalTimeoutMs = options.totalTimeoutMs } = sendOptions;
      if (signal.aborted) throw new TransportError('aborted', 'the caller went away');
      const { origin, addresses } = request;
      const pool = getOrMake<string, Pool>(pools, `${addresses} ${origin}`, () => open(origin, addresses));
      const { maxResponseBytes } = options;
      const exchange = new Exchange({
        stream: request.stream,
        maxResponseBytes,
        totalTimeoutMs,
        signal,
        share,
        room,
        secret,
        parseLarge: (json) => options.parseLarge(json, sendOptions),
      });
      pool.dispatch(
        {
          path: request.path,
          method: request.method,
          headers: { ...request.headers, 'accept-encoding': 'identity' },
          body: request.body ?? null,
        },
        exchange,
      );
      return exchange.response;
    },
    async close() {
      const open = [...pools.values()];
      pools.clear();
      await Promise.all(open.map((pool) => pool.destroy()));
    },
  };
}
