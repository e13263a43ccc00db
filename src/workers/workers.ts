import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '../config/config.ts';
import type { RateWindows } from '../core/access/shared-rates.ts';
import { type Counts, sumOfEnded } from '../metrics.ts';
import type { PolicyInForce } from '../policy/active-policy.ts';
import type { CanRecord } from '../store/recording-check.ts';
import type { Store } from '../store/store.ts';
import type { Telemetry } from '../telemetry.ts';
import { WorkerCalls } from './worker-calls.ts';
import { WorkerThread } from './worker-thread.ts';

export interface WorkersDeps {
  readonly config: Config;
  readonly store: Store;
  readonly canRecord: CanRecord;
  /** By which they begin to decide. */
  readonly policy: PolicyInForce;
  readonly telemetry: Telemetry;
  readonly rateWindows: RateWindows;
  readonly sandboxOrigin: string | undefined;
}

/** Milliseconds for a worker to say what it has counted. */
const COUNTS_MS = 2000;
/** Before another worker takes the place of one that died: what kills it at once must not take a core. */
const RESTART_MS = 1000;
/** Beyond the grace of a stop: to settle what was cut, and to close. */
const CLOSING_MS = 20_000;

/** What each worker may hold of the limits that are the whole gateway's. */
function shareOf(config: Config): Config {
  const { limits, workers } = config;
  return {
    ...config,
    limits: {
      ...limits,
      inFlight: Math.ceil(limits.inFlight / workers),
      bufferedBytes: Math.ceil(limits.bufferedBytes / workers),
      cacheBytes: Math.ceil(limits.cacheBytes / workers),
    },
  };
}

/** Threads that serve the gateway at one address. */
export class Workers {
  readonly #deps: WorkersDeps;
  readonly #config: Config;
  readonly #threads = new Map<number, WorkerThread>();
  /** Of workers that have died: a counter never goes down. */
  #countsOfDead: Promise<Counts> = Promise.resolve([]);
  readonly #port: number;
  /** Of those that start from now on. */
  #policy: PolicyInForce;
  #isClosing = false;
  #restarts = Promise.resolve();

  /** @param port free for all of them to listen on */
  constructor(deps: WorkersDeps, port: number) {
    this.#deps = deps;
    this.#config = shareOf(deps.config);
    this.#policy = deps.policy;
    this.#port = port;
  }

  /** Resolves when all of them listen; rejects with what keeps one from starting. */
  async start(): Promise<void> {
    const threads = Array.from({ length: this.#config.workers }, (_, index) => this.#startThread(index + 1));
    await Promise.all(threads.map((thread) => thread.listening));
  }

  /** Each thread's next decision is made by this policy, from when the message reaches it. */
  activate(policy: PolicyInForce): void {
    this.#policy = policy;
    for (const thread of this.#threads.values()) thread.activate(policy);
  }

  counts(): Promise<readonly Counts[]> {
    const threads = [...this.#threads.values()];
    return Promise.all([this.#countsOfDead, ...threads.map((thread) => thread.counts(COUNTS_MS))]);
  }

  /** No new requests; what runs is finished and settled, within `graceMs`. */
  async close(graceMs: number): Promise<void> {
    this.#isClosing = true;
    const threads = [...this.#threads.values()];
    await Promise.all([this.#restarts, ...threads.map((thread) => thread.close(graceMs + CLOSING_MS))]);
  }

  #startThread(number: number): WorkerThread {
    const { store, canRecord, telemetry, rateWindows, sandboxOrigin } = this.#deps;
    const calls = new WorkerCalls(store, canRecord);
    const start = { config: this.#config, sandboxOrigin, rateWindows, policy: this.#policy, port: this.#port };
    const thread = new WorkerThread(`gateway ${number}`, start, calls, {
      onLog: (target, lines) => telemetry.write(target, lines),
      onDeath: (cause, counts) => {
        this.#threads.delete(number);
        this.#countsOfDead = this.#countsOfDead.then((before) => sumOfEnded([before, counts]));
        this.#restarts = Promise.all([this.#restarts, this.#replace(number, calls, cause)]).then(() => {});
      },
    });
    this.#threads.set(number, thread);
    return thread;
  }

  async #replace(number: number, calls: WorkerCalls, cause: unknown): Promise<void> {
    const { telemetry } = this.#deps;
    telemetry.failure('', cause);
    try {
      telemetry.recovered(await calls.recover());
    } catch (error) {
      telemetry.failure('', error);
    }
    await sleep(RESTART_MS, undefined, { ref: false });
    if (!this.#isClosing) this.#startThread(number);
  }
}
