import { connect } from 'node:net';
import { Connection } from '../connection.ts';
import type { Gateway } from '../gateway.ts';
import { addCappedKey, addDeniedKey } from '../gateway-rules.ts';
import type { Target } from '../target.ts';
import { type Kind, rawRequests } from '../workload.ts';

/** Whose cost is measured. A chunk's is what a stream of more chunks costs more. */
export const SCENARIOS = ['plain call', 'capped key', 'cache hit', 'denial', 'stream chunk'] as const;

export type Scenario = (typeof SCENARIOS)[number];

/** Runs so many exchanges of one sort, one after the other over a connection of their own. */
export type RunExchanges = (count: number) => Promise<void>;

export const LONG_CHUNKS = 68;
export const SHORT_CHUNKS = 4;
/** Ends each event of a stream on the wire. */
const EVENT_END = '\n\n\r\n';

export type ExchangeName = Exclude<Scenario, 'stream chunk'> | 'long stream' | 'short stream';

export type ByExchange<T> = Readonly<Record<ExchangeName, T>>;

/** Makes one thing for each kind of exchange. */
export const forEach = <T>(make: (name: ExchangeName) => T): ByExchange<T> => ({
  'plain call': make('plain call'),
  'capped key': make('capped key'),
  'cache hit': make('cache hit'),
  denial: make('denial'),
  'long stream': make('long stream'),
  'short stream': make('short stream'),
});

/** The same, where each must wait for the one before it. */
export const inTurn = async <T>(make: (name: ExchangeName) => Promise<T>): Promise<ByExchange<T>> => ({
  'plain call': await make('plain call'),
  'capped key': await make('capped key'),
  'cache hit': await make('cache hit'),
  denial: await make('denial'),
  'long stream': await make('long stream'),
  'short stream': await make('short stream'),
});

interface Sort {
  readonly apiKey: string;
  readonly status?: number;
  readonly kind?: Kind;
  readonly equalBodies?: boolean;
}

/** Exchanges that all end with the wanted status. A stream's next chunk leaves the upstream when the one before it has arrived here. */
function runs(gateway: Gateway, upstream: Target, sort: Sort): RunExchanges {
  const { apiKey, status = 200, kind = 'whole', equalBodies = false } = sort;
  const next = rawRequests({ ...gateway.target, equalBodies }, apiKey, kind);
  return async (count) => {
    const control = connect(upstream.port, '127.0.0.1').setNoDelay().resume();
    const connection = new Connection(gateway.target.port, (tail) => {
      if (tail.endsWith(EVENT_END)) control.write('GET /next HTTP/1.1\r\nhost: upstream\r\n\r\n');
    });
    try {
      for (let done = 0; done < count; done += 1) {
        const exchange = await connection.exchange(next());
        if (exchange.status !== status) throw new Error(`the gateway answered ${exchange.status}, not ${status}`);
      }
    } finally {
      connection.close();
      control.destroy();
    }
  };
}

export async function runsOf(gateway: Gateway, upstream: Target): Promise<ByExchange<RunExchanges>> {
  const { apiKey, managementUrl, masterKey } = gateway;
  const [capped, denied] = [await addCappedKey(managementUrl, masterKey), await addDeniedKey(managementUrl, masterKey)];
  return {
    'plain call': runs(gateway, upstream, { apiKey }),
    'capped key': runs(gateway, upstream, { apiKey: capped }),
    'cache hit': runs(gateway, upstream, { apiKey, equalBodies: true }),
    denial: runs(gateway, upstream, { apiKey: denied, status: 403 }),
    'long stream': runs(gateway, upstream, { apiKey, kind: `${LONG_CHUNKS} chunks, one by one` }),
    'short stream': runs(gateway, upstream, { apiKey, kind: `${SHORT_CHUNKS} chunks, one by one` }),
  };
}
