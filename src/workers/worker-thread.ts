import { Worker } from 'node:worker_threads';
import type { Counts } from '../metrics.ts';
import type { PolicyInForce } from '../policy/active-policy.ts';
import type { FromWorker, ToWorker, WorkerStart } from './messages.ts';
import { Outbox } from './outbox.ts';
import type { WorkerCalls } from './worker-calls.ts';

export interface WorkerListener {
  onLog(target: string, lines: string): void;
  /** It ended, and nobody had asked it to. @param counts what it had counted when it was last asked */
  onDeath(cause: unknown, counts: Counts): void;
}

/** One worker, as the writer's thread sees it. */
export class WorkerThread {
  readonly #worker: Worker;
  readonly #calls: WorkerCalls;
  readonly #outbox: Outbox<ToWorker>;
  readonly #counting = new Map<number, (counts: Counts) => void>();
  /** Rejects when it cannot be had. */
  readonly listening: Promise<void>;
  readonly #exit = Promise.withResolvers<void>();
  #isClosing = false;
  #counted = 0;
  /** The worker's last answer. */
  #counts: Counts = [];

  constructor(name: string, start: WorkerStart, calls: WorkerCalls, listener: WorkerListener) {
    this.#calls = calls;
    this.#worker = new Worker(new URL('../gateway-worker.ts', import.meta.url), { name, workerData: start });
    // Answers of one commit go together: by then all of them have been posted.
    this.#outbox = new Outbox((messages) => this.#worker.postMessage(messages), process.nextTick);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.listening = promise;
    promise.catch(() => {});
    let cause: unknown = new Error('The worker ended by itself.');
    this.#worker.on('error', (error) => {
      cause = error;
    });
    this.#worker.once('exit', () => {
      reject(cause);
      for (const tell of this.#counting.values()) tell(this.#counts);
      this.#exit.resolve();
      if (!this.#isClosing) listener.onDeath(cause, this.#counts);
    });
    this.#worker.on('message', (messages: readonly FromWorker[]) => {
      for (const message of messages) {
        switch (message.kind) {
          case 'asked':
            void this.#answer(message);
            break;
          case 'log':
            listener.onLog(message.target, message.lines);
            break;
          case 'counts':
            this.#counting.get(message.id)?.(message.counts);
            break;
          case 'listening':
            resolve();
            break;
        }
      }
    });
  }

  /** What it has counted; if it does not answer, what it had counted when it did. */
  async counts(limitMs: number): Promise<Counts> {
    this.#counted += 1;
    const id = this.#counted;
    const { promise, resolve } = Promise.withResolvers<Counts>();
    this.#counting.set(id, resolve);
    const timer = setTimeout(() => resolve(this.#counts), limitMs);
    this.#outbox.post({ kind: 'count', id });
    this.#counts = await promise;
    clearTimeout(timer);
    this.#counting.delete(id);
    return this.#counts;
  }

  /** Its next decision is made by this policy. */
  activate(policy: PolicyInForce): void {
    this.#outbox.post({ kind: 'policy', policy });
  }

  /** It finishes what runs, and ends; after `limitMs` it is ended. */
  async close(limitMs: number): Promise<void> {
    this.#isClosing = true;
    this.#outbox.post({ kind: 'close' });
    const timer = setTimeout(() => void this.#worker.terminate(), limitMs);
    await this.#exit.promise;
    clearTimeout(timer);
    await this.#calls.recover();
  }

  async #answer({ id, question }: Extract<FromWorker, { kind: 'asked' }>): Promise<void> {
    const answer = await this.#calls.answer(question);
    this.#outbox.post({ kind: 'answered', id, answer });
  }
}
