// What is documented to come of a fault (src/core/README.md, "failover").
import type { Fault } from './fault-server.ts';

/** Nothing was sent yet: the next provider is asked, and where there is none, the caller gets this status. */
interface FailedAttempt {
  readonly is: 'failed attempt';
  readonly status: 429 | 502 | 503 | 504;
  readonly message: string;
  /** Of the entry in `metadata.routing`. */
  readonly entry: { readonly error_type: string; readonly status_code?: number };
  /** Whether another provider is asked. */
  readonly isRetried: boolean;
  /** Pico-dollars that the provider reported; `estimated`: we gave it up when it had read the prompt, and pay for that. */
  readonly cost: bigint | 'estimated';
}

/** Part of the answer had been sent: the failure follows in band, without `[DONE]`. */
interface ToldInBand {
  readonly is: 'told in band';
  readonly status: FailedAttempt['status'];
  readonly message: string;
  /** The text of the chunks that came before it. */
  readonly said: string;
  /** Pico-dollars: what the provider had reported until then; `estimated` where a bound of ours cut it off. */
  readonly cost: bigint | 'estimated';
}

/** The fault does no harm. */
interface Served {
  readonly is: 'served';
}

export type Outcome = FailedAttempt | ToldInBand | Served;

type Entry = FailedAttempt['entry'];

const failed = (status: FailedAttempt['status'], message: string, entry: Entry): FailedAttempt => ({
  is: 'failed attempt',
  status,
  message,
  entry,
  isRetried: true,
  cost: 0n,
});

/** The same, but the provider is paid for the prompt that it has read. */
export const paid = (outcome: FailedAttempt): FailedAttempt => ({ ...outcome, cost: 'estimated' });

/** The same, but the provider has reported what the answer took. */
export const charged = (outcome: FailedAttempt, cost: bigint): FailedAttempt => ({ ...outcome, cost });

export const free = (outcome: FailedAttempt): FailedAttempt => charged(outcome, 0n);

export const SERVED: Served = { is: 'served' };

const LOST = 'The connection to the provider failed: it could not be made or was cut.';
export const lost = failed(502, LOST, { error_type: 'connection' });

export const timedOut = (what: string): FailedAttempt =>
  paid(failed(504, `The provider took too long: ${what}.`, { error_type: 'timeout' }));

export const refused = (why: string): FailedAttempt =>
  failed(502, `The answer of the provider was refused: ${why}.`, { error_type: 'bad_response' });

/** An answer that arrived and is none. */
export const badAnswer = (message: string, status = 200): FailedAttempt =>
  failed(502, message, { error_type: 'bad_response', status_code: status });

export const reported = (status: number, type: string, message: string): FailedAttempt =>
  failed(status === 429 || status === 503 ? status : 502, message, { error_type: type, status_code: status });

/** The same, but no other provider is asked. */
export const final = (outcome: FailedAttempt): FailedAttempt => ({ ...outcome, isRetried: false });

/** The same failure after these words were sent. */
export const inBand = (
  { status, message, cost: ownCost }: FailedAttempt,
  said: string,
  cost: ToldInBand['cost'] = ownCost,
): ToldInBand => ({
  is: 'told in band',
  status,
  message,
  said,
  cost,
});

/** A line of the specification: how the upstream fails, and the outcome for either kind of call. */
export interface FaultCase {
  readonly name: string;
  readonly fault: Fault | 'down';
  readonly whole?: Outcome;
  readonly streamed?: Outcome;
  /** The answer is complete as HTTP goes, so that its connection may be kept. */
  readonly keepsConnection?: boolean;
  /** The caller gets the upstream's error text, scrubbed. */
  readonly isQuoted?: boolean;
}
