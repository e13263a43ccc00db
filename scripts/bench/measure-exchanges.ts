import { Connection, type Exchange } from './connection.ts';
import { cpuSeconds } from './cpu-time.ts';
import { percentile } from './statistics.ts';
import type { Target } from './target.ts';
import { rawRequests } from './workload.ts';

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

function check(exchange: Exchange, target: Target, stream: boolean): void {
  if (exchange.status !== 200) throw new Error(`${target.name} answered ${exchange.status}`);
  if (stream && !exchange.tail.endsWith(STREAM_END)) throw new Error(`${target.name} ended a stream without [DONE]`);
}

/** One request after the other on one connection until the time is up; milliseconds of each. */
async function exchangeUntil(deadline: number, target: Target, apiKey: string, stream: boolean): Promise<number[]> {
  const nextRequest = rawRequests(target.port, apiKey, stream);
  const connection = new Connection(target.port);
  const milliseconds: number[] = [];
  try {
    do {
      const exchange = await connection.exchange(nextRequest());
      check(exchange, target, stream);
      milliseconds.push(exchange.nanoseconds / MICROSECONDS);
    } while (performance.now() < deadline);
  } finally {
    connection.close();
  }
  return milliseconds;
}

async function measure(target: Target, apiKey: string, seconds: number, connections: number, stream: boolean) {
  const cpuBefore = cpuSeconds(target.pid);
  const start = performance.now();
  const workers = Array.from({ length: connections }, () =>
    exchangeUntil(start + seconds * 1000, target, apiKey, stream),
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
}

/** Latency of whole answers, one request at a time over one connection. */
export const measureLatency = (target: Target, apiKey: string, seconds: number): Promise<ExchangeFigures> =>
  measure(target, apiKey, seconds, 1, false);

const STREAM_CONNECTIONS = 8;

/** Streams, one after the other on each of eight connections; their time is from the request to the last byte. */
export const measureStreams = (target: Target, apiKey: string, seconds: number): Promise<ExchangeFigures> =>
  measure(target, apiKey, seconds, STREAM_CONNECTIONS, true);
