import { Connection } from '../connection.ts';
import type { Gateway } from '../gateway.ts';
import { addCappedKey, addDeniedKey } from '../gateway-rules.ts';
import { type Kind, rawRequests } from '../workload.ts';

/** What a call's cost is told for. A chunk's is what a stream of more chunks costs more. */
export const SCENARIOS = ['plain call', 'capped key', 'cache hit', 'denial', 'stream chunk'] as const;

export type Scenario = (typeof SCENARIOS)[number];

/** Exchanges of one sort, one after the other over one connection. */
export interface Exchanges {
  run(count: number): Promise<void>;
  close(): void;
}

export const LONG_CHUNKS = 68;
export const SHORT_CHUNKS = 4;
/** Long enough for a chunk to be passed on before the next one comes. */
const GAP_MS = 2;
const EMULATED_GAP_MS = 15;

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

function exchanges(gateway: Gateway, apiKey: string, kind: Kind, status: number, equalBodies = false): Exchanges {
  const target = { ...gateway.target, equalBodies };
  const next = rawRequests(target, apiKey, kind);
  const connection = new Connection(target.port);
  return {
    async run(count) {
      for (let done = 0; done < count; done += 1) {
        const exchange = await connection.exchange(next());
        if (exchange.status !== status) throw new Error(`the gateway answered ${exchange.status}, not ${status}`);
      }
    },
    close: () => connection.close(),
  };
}

/** @param isEmulated the gateway is twenty times as slow as it would be */
export async function startExchanges(gateway: Gateway, isEmulated: boolean): Promise<ByExchange<Exchanges>> {
  const { apiKey, managementUrl, masterKey } = gateway;
  const gap = isEmulated ? EMULATED_GAP_MS : GAP_MS;
  const stream = (chunks: number): Exchanges => exchanges(gateway, apiKey, `${chunks} chunks, ${gap} ms apart`, 200);
  return {
    'plain call': exchanges(gateway, apiKey, 'whole', 200),
    'capped key': exchanges(gateway, await addCappedKey(managementUrl, masterKey), 'whole', 200),
    'cache hit': exchanges(gateway, apiKey, 'whole', 200, true),
    denial: exchanges(gateway, await addDeniedKey(managementUrl, masterKey), 'whole', 403),
    'long stream': stream(LONG_CHUNKS),
    'short stream': stream(SHORT_CHUNKS),
  };
}
