import { Connection, type Exchange } from './connection.ts';
import { cpuSeconds } from './cpu-time.ts';
import { percentile } from './statistics.ts';
import type { Target } from './target.ts';
import { type Kind, PACED, rawRequests } from './workload.ts';

/** Ends a stream that came whole: `[DONE]`, then the last chunk of the transfer. */
const STREAM_END = 'data: [DONE]\n\n\r\n0\r\n\r\n';
const MICROSECONDS = 1e6;

export interface ExchangeFigures {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** CPU time of the target for each exchange. */
  readonly cpuUs: number;
}

/** One exchange, checked. @throws Error unless it is 200, and a stream whole */
export async function exchangeOnce(
  connection: Connection,
  target: Target,
  request: string,
  kind: Kind,
): Promise<Exchange> {
  const exchange = await connection.exchange(request);
  if (exchange.status !== 200) throw new Error(`${target.name} answered ${exchange.status}`);
  if (kind !== 'whole' && !exchange.tail.endsWith(STREAM_END)) {
    throw new Error(`${target.name} ended a stream without [DONE]`);
  }
  return exchange;
}

/** One request after the other on one connection until the time is up; milliseconds of each. */
async function exchangeUntil(deadline: number, target: Target, apiKey: string, kind: Kind): Promise<number[]> {
  const nextRequest = rawRequests(target, apiKey, kind);
  const connection = new Connection(target.port);
  const milliseconds: number[] = [];
  try {
    do {
      const { nanoseconds } = await exchangeOnce(connection, target, nextRequest(), kind);
      milliseconds.push(nanoseconds / MICROSECONDS);
    } while (performance.now() < deadline);
  } finally {
    connection.close();
  }
  return milliseconds;
}

export type MeasureExchanges = (target: Target, apiKey: string, seconds: number) => Promise<ExchangeFigures>;

const measure =
  (kind: Kind, connections: number): MeasureExchanges =>
  async (target, apiKey, seconds) => {
    const cpuBefore = cpuSeconds(target.pid);
    const start = performance.now();
    const workers = Array.from({ length: connections }, () =>
      exchangeUntil(start + seconds * 1000, target, apiKey, kind),
    );
    const milliseconds = (await Promise.all(workers)).flat();
    const elapsed = (performance.now() - start) / 1000;
    const cpu = cpuSeconds(target.pid) - cpuBefore;
    return {
      perSecond: milliseconds.length / elapsed,
      p50Ms: percentile(milliseconds, 0.5),
      p99Ms: percentile(milliseconds, 0.99),
      cpuUs: (cpu * MICROSECONDS) / milliseconds.length,
    };
  };

/** Latency of whole answers, one request at a time over one connection. */
export const measureLatency = measure('whole', 1);

export const STREAM_CONNECTIONS = 8;

/** Streams, one after the other on each connection; their time is from the request to the last byte. */
export const measureBursts = measure('burst', STREAM_CONNECTIONS);
export const measurePacedAlone = measure(PACED, 1);
export const measurePaced = measure(PACED, STREAM_CONNECTIONS);
