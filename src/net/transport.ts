import { Pool } from 'undici';
import type { Endpoint } from '../domain/endpoint.ts';
import { type AddressPolicy, guardedConnector } from './address-policy.ts';
import { Exchange, type OutboundResponse } from './exchange.ts';
import { TransportError } from './transport-error.ts';

export interface TransportOptions {
  /** Milliseconds until a connection (TLS included) must stand. */
  readonly connectTimeoutMs: number;
  /** Milliseconds from the sent request to the answer's headers. This and the next one are exact to about a second. */
  readonly firstByteTimeoutMs: number;
  /** Milliseconds between two pieces of the body, counted only while we read. */
  readonly idleTimeoutMs: number;
  /** Milliseconds from `send` to the last byte, waiting for a connection included. */
  readonly totalTimeoutMs: number;
  /** Bytes of a body, gathered or streamed. */
  readonly maxResponseBytes: number;
  /** Connections to one origin; further requests wait for one. */
  readonly maxConnections?: number;
  /** Hosts that requests to public addresses may reach although their address is private; default: none. */
  readonly privateExceptions?: readonly Endpoint[];
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
  /** Milliseconds for this exchange in place of the transport's own. */
  readonly totalTimeoutMs?: number;
}

export interface Transport {
  /**
   * One exchange: no redirect followed, nothing retried, no content encoding but identity.
   * @throws TransportError, always and only; so does the reader of a streamed body.
   */
  send(request: OutboundRequest, options: SendOptions): Promise<OutboundResponse>;
  /** Cuts every connection. */
  close(): Promise<void>;
}

const MAX_POOLS = 256;
const KEEP_ALIVE_MS = 10_000;

/** The only way out of the process: kept-alive pools of connections, one for each origin and address policy. */
export function createTransport(options: TransportOptions): Transport {
  const pools = new Map<string, Pool>();

  function open(origin: string, addresses: AddressPolicy): Pool {
    return new Pool(origin, {
      connect: guardedConnector(addresses, {
        timeoutMs: options.connectTimeoutMs,
        exceptions: options.privateExceptions ?? [],
      }),
      connections: options.maxConnections ?? 512,
      pipelining: 1,
      allowH2: false,
      headersTimeout: options.firstByteTimeoutMs,
      bodyTimeout: options.idleTimeoutMs,
      keepAliveTimeout: KEEP_ALIVE_MS,
    });
  }

  function poolFor(origin: string, addresses: AddressPolicy): Pool {
    const key = `${addresses} ${origin}`;
    const known = pools.get(key);
    if (known !== undefined) return known;
    const [oldest] = pools;
    if (pools.size >= MAX_POOLS && oldest !== undefined) {
      pools.delete(oldest[0]);
      void oldest[1].close(); // lets what runs on it finish
    }
    const pool = open(origin, addresses);
    pools.set(key, pool);
    return pool;
  }

  return {
    async send(request, { signal, totalTimeoutMs = options.totalTimeoutMs }) {
      if (signal.aborted) throw new TransportError('aborted', 'the caller went away');
      const pool = poolFor(request.origin, request.addresses);
      const { maxResponseBytes } = options;
      const exchange = new Exchange({ stream: request.stream, maxResponseBytes, totalTimeoutMs, signal });
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
