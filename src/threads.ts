import { Worker } from 'node:worker_threads';

export interface ThreadsOptions {
  /** Answers each message with exactly one. */
  readonly script: URL;
  /** Threads at most. Each is started when it is first needed, and another in its place when it died. */
  readonly most: number;
  /** Questions that may wait. */
  readonly maxWaiting: number;
  /** Milliseconds for one answer, the start of the thread included and the wait for it not. */
  readonly limitMs: number;
  /** Megabytes of heap for each thread. */
  readonly maxOldSpaceMb: number;
}

export interface Asked {
  /** On whose behalf: shares take turns, and each has one question answered at a time while another waits. */
  readonly share: string;
  /** Aborted: a question that still waits is forgotten. */
  readonly signal: AbortSignal;
  /** Of the question: they are handed over, not copied, so that nobody else may have their memory. */
  readonly bytes?: Uint8Array;
}

/** More questions wait than may. */
export class ThreadsBusy extends Error {
  override readonly name = 'ThreadsBusy';
}

interface Job<Answer> {
  readonly message: object;
  readonly asked: Asked;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: Error) => void;
}

/** Threads that compute what would stop the serving one. */
export class Threads<Question extends object, Answer> {
  readonly #options: ThreadsOptions;
  readonly #idle: Worker[] = [];
  readonly #busy = new Map<Worker, string>();
  /** By share, the one whose turn is next first. */
  readonly #waiting = new Map<string, Job<Answer>[]>();
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
    const job: Job<Answer> = { message, asked, resolve, reject };
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
    await Promise.all([...this.#idle, ...this.#busy.keys()].map((worker) => worker.terminate()));
  }

  #work(): void {
    while (this.#idle.length + this.#busy.size < this.#options.most || this.#idle.length > 0) {
      const job = this.#next();
      if (job === undefined) return;
      void this.#run(this.#idle.pop() ?? this.#start(), job);
    }
  }

  /** The first question of the first share that has none with a thread; that share's next turn comes last. */
  #next(): Job<Answer> | undefined {
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

  #forget(job: Job<Answer>): void {
    const jobs = this.#waiting.get(job.asked.share) ?? [];
    const place = jobs.indexOf(job);
    if (place === -1) return;
    jobs.splice(place, 1);
    if (jobs.length === 0) this.#waiting.delete(job.asked.share);
    this.#jobs -= 1;
    job.reject(new Error('Nobody waits for the answer.'));
  }

  #start(): Worker {
    const { script, maxOldSpaceMb } = this.#options;
    // Their young generation would take three times as much by default, and their work gains nothing by it.
    const resourceLimits = { maxOldGenerationSizeMb: maxOldSpaceMb, maxYoungGenerationSizeMb: 16 };
    const worker = new Worker(script, { resourceLimits });
    worker.unref(); // The waiting side has a timer.
    worker.on('error', () => {}); // The waiting side is told by `#run`.
    worker.once('exit', () => {
      const place = this.#idle.indexOf(worker);
      if (place !== -1) this.#idle.splice(place, 1);
    });
    return worker;
  }

  async #run(worker: Worker, { message, asked, resolve, reject }: Job<Answer>): Promise<void> {
    this.#busy.set(worker, asked.share);
    try {
      resolve(await answerOf<Answer>(worker, message, asked.bytes, this.#options.limitMs));
      this.#busy.delete(worker);
      this.#idle.push(worker);
    } catch (error) {
      await worker.terminate(); // It may still compute, or be broken.
      this.#busy.delete(worker);
      reject(error instanceof Error ? error : new Error(String(error)));
    }
    if (!this.#closed) this.#work();
  }
}

/** The thread's answer; rejects when it ends without one, or when it takes too long. */
async function answerOf<Answer>(
  worker: Worker,
  message: object,
  bytes: Uint8Array | undefined,
  limitMs: number,
): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const ended = (cause: unknown): void => reject(new Error('The thread ended without an answer.', { cause }));
  const timer = setTimeout(() => reject(new Error(`The thread took longer than ${limitMs} ms.`)), limitMs);
  worker.once('message', resolve).once('error', ended).once('exit', ended);
  try {
    worker.postMessage(message, bytes?.buffer instanceof ArrayBuffer ? [bytes.buffer] : []);
    return await promise;
  } finally {
    clearTimeout(timer);
    worker.off('message', resolve).off('error', ended).off('exit', ended);
  }
}
