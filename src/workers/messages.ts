import type { Config } from '../config/config.ts';
import type { RateWindows } from '../core/access/shared-rates.ts';
import { ApiError } from '../domain/errors.ts';
import type { CallBounds } from '../domain/reservation.ts';
import type { Counts } from '../metrics.ts';
import type { PolicyInForce } from '../policy/active-policy.ts';
import type { DecisionRecord } from '../store/ledger/decisions.ts';
import type { Candidate, FinishedCall, NewCall, OpenCall, Settlement } from '../store/ledger/ledger.ts';

/** An error on its way to another thread; what happened is for the log. */
export interface SentError {
  /** Undefined: a fault of ours. */
  readonly answer: Pick<ApiError, 'status' | 'code' | 'message' | 'param' | 'headers'> | undefined;
  readonly text: string;
}

export function sent(error: unknown): SentError {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  if (!(error instanceof ApiError)) return { answer: undefined, text };
  const { status, code, message, param, headers } = error;
  return { answer: { status, code, message, param, headers }, text };
}

export const received = ({ answer, text }: SentError): Error =>
  answer === undefined
    ? new Error(`The writer failed: ${text}`)
    : new ApiError(answer.status, answer.code, answer.message, { ...answer, cause: text });

/** What a worker asks the writer, who answers when it is committed. */
export type Question =
  | {
      readonly kind: 'open';
      readonly call: NewCall;
      readonly decision: DecisionRecord;
      /** Undefined: the key seemed to have no limit. */
      readonly worstCase: CallBounds | SentError | undefined;
      readonly candidates: readonly Candidate[];
    }
  | { readonly kind: 'continue'; readonly callId: string; readonly charged: bigint }
  | { readonly kind: 'settle'; readonly callId: string; readonly settlement: Settlement }
  | {
      readonly kind: 'finish';
      readonly call: NewCall;
      readonly decision: DecisionRecord;
      readonly outcome: FinishedCall;
    }
  | { readonly kind: 'can record' };

/** What the worker does not know of a call that it has opened. */
export type Opened = Pick<OpenCall, 'number' | 'origin' | 'reservation' | 'held' | 'windows' | 'ruleRevision'>;

export type Answer =
  | { readonly kind: 'opened'; readonly opened: Opened }
  /** A limit applies by now: the question has to come again, with the worst case. */
  | { readonly kind: 'limited' }
  | { readonly kind: 'held'; readonly held: bigint }
  | { readonly kind: 'done'; readonly done: boolean }
  | { readonly kind: 'refused'; readonly error: SentError };

export type FromWorker =
  | { readonly kind: 'asked'; readonly id: number; readonly question: Question }
  | { readonly kind: 'log'; readonly target: string; readonly lines: string }
  | { readonly kind: 'counts'; readonly id: number; readonly counts: Counts }
  | { readonly kind: 'listening' };

export type ToWorker =
  | { readonly kind: 'answered'; readonly id: number; readonly answer: Answer }
  | { readonly kind: 'count'; readonly id: number }
  | { readonly kind: 'policy'; readonly policy: PolicyInForce }
  | { readonly kind: 'close' };

/** What a worker is started with. */
export interface WorkerStart {
  readonly config: Config;
  readonly sandboxOrigin: string | undefined;
  readonly rateWindows: RateWindows;
  readonly policy: PolicyInForce;
  /** On which all of them listen. */
  readonly port: number;
}
