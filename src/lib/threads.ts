import type { Worker } from 'node:worker_threads';
import { Thread } from './thread.ts';

export interface ThreadsOptions {
  /** Starts a thread that answers each message with exactly one message. */
  readonly start: () => Worker;
  /** Threads at most; each is started when it is first needed. */
  readonly most: number;
  /** Questions that may wait. */
  readonly maxWaiting: number;
  /** Milliseconds for one answer, the start of the thread included and the wait for it not. */
  readonly limitMs: number;
}

export interface Asked {
  /** On whose behalf: shares take turns, and each has one question answered at a time while another waits. */
  readonly share: string;
  /** Aborted: a question that still waits is forgotten. */
  readonly signal: AbortSignal;
  /** Of the question: they are handed over, not copied, so that nothing else may have their memory. */
  readonly bytes?: Uint8Array;
}

/** More questions wait than may. */
export class ThreadsBusy extends Error {
  override readonly name = 'ThreadsBusy';
}

interface Job<Question, Answer> {
  readonly message: Question;
  readonly asked: Asked;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: Error) => void;
}

/** Threads that compute what would stop the serving one. */
export class Threads<Question extends object, Answer> {
  readonly #options: ThreadsOptions;
  readonly #idle: Thread<Question, Answer>[] = [];
  readonly #busy = new Map<Thread<Question, Answer>, string>();
  /** By share, the one whose turn is next first. */
  readonly #waiting = new Map<string, Job<Question, Answer>[]>();
  #jobs = 0;
  #closed = false;

  constructor(options: ThreadsOptions) {
    this.#options = options;
  }

  /** @throws ThreadsBusy; an Error when the thread died or took too long, or when nobody waits any more */
  async ask(message: Question, asked: Asked): Promise<Answer> {
    const { share, signal } = asked;
    if (this.#closed || signal.aborted) throw new Error('Nobody waits for the answer.');
    if (this.#jobs >= this.#options.maxWaiting) throw new ThreadsBusy('Too many questions wait for a thread.');
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const job: Job<Question, Answer> = { message, asked, resolve, reject };
    const jobs = this.#waiting.get(share);
    if (jobs === undefined) this.#waiting.set(share, [job]);
    else jobs.push(job);
    this.#jobs += 1;
    const forget = (): void => this.#forget(job);
    signal.addEventListener('abort', forget, { once: true });
    this.#work();
    try {
      return await promise;
    } finally {
      signal.removeEventListener('abort', forget);
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const jobs of [...this.#waiting.values()]) for (const job of [...jobs]) this.#forget(job);
    await Promise.all([...this.#idle, ...this.#busy.keys()].map((thread) => thread.end()));
  }

  #work(): void {
    while (this.#idle.length + this.#busy.size < this.#options.most || this.#idle.length > 0) {
      const job = this.#next();
      if (job === undefined) return;
      void this.#run(this.#idle.pop() ?? new Thread(this.#options.start), job);
    }
  }

  /** The first question of the first share that has none with a thread; that share's next turn comes last. */
  #next(): Job<Question, Answer> | undefined {
    const served = new Set(this.#busy.values());
    for (const [share, jobs] of this.#waiting) {
      if (served.has(share)) continue;
      const job = jobs.shift();
      this.#waiting.delete(share);
      if (jobs.length > 0) this.#waiting.set(share, jobs);
      this.#jobs -= 1;
      return job;
    }
    return undefined;
  }

  #forget(job: Job<Question, Answer>): void {
    const jobs = this.#waiting.get(job.asked.share) ?? [];
    const place = jobs.indexOf(job);
    if (place === -1) return;
    jobs.splice(place, 1);
    if (jobs.length === 0) this.#waiting.delete(job.asked.share);
    this.#jobs -= 1;
    job.reject(new Error('Nobody waits for the answer.'));
  }

  async #run(
    thread: Thread<Question, Answer>,
    { message, asked, resolve, reject }: Job<Question, Answer>,
  ): Promise<void> {
    this.#busy.set(thread, asked.share);
    try {
      resolve(await thread.ask(message, { limitMs: this.#options.limitMs, bytes: asked.bytes }));
    } catch (error) {
      reject(error instanceof Error ? error : new Error(String(error)));
    }
    this.#busy.delete(thread);
    this.#idle.push(thread);
    if (!this.#closed) this.#work();
  }
}
