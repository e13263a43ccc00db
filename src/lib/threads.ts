import { type ResourceLimits, Worker } from 'node:worker_threads';

interface JobTraits {
  readonly limits: ResourceLimits;
  /** Where it and the serving thread want the same core, calls come first. */
  readonly yieldsToCalls: boolean;
  /** False: nobody waits for an answer. */
  readonly answers: boolean;
}

/** Reads rows, of which few live at once: without a bound each of these threads keeps up to 48 MB for new objects. The rules are analysed apart, so that a report waits for no replay. */
const READER = {
  limits: { maxOldGenerationSizeMb: 1024, maxYoungGenerationSizeMb: 8 },
  yieldsToCalls: true,
  answers: true,
} as const;

/** Judges rules. Commands use it, and their user waits. */
const JUDGE = { limits: {}, yieldsToCalls: false, answers: true } as const;

/** What threads do, with the bounds of each; a thread does one job. The module behind each job stands in src/thread.ts. */
export const JOBS = {
  /** The young generation would take three times as much by default, and the work gains nothing by it. */
  readAnswers: {
    limits: { maxOldGenerationSizeMb: 256, maxYoungGenerationSizeMb: 8 },
    yieldsToCalls: false,
    answers: true,
  },
  /** The tokenizer's tables are 40 MB of it; the small young generation keeps garbage from adding as much again. */
  countTokens: {
    limits: { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 8 },
    yieldsToCalls: false,
    answers: true,
  },
  checkpoint: {
    limits: { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 2 },
    yieldsToCalls: true,
    answers: false,
  },
  readDatabase: READER,
  analyse: READER,
  judgeSubjects: JUDGE,
  judgeVerdicts: JUDGE,
} as const satisfies Record<string, JobTraits>;

export type JobName = keyof typeof JOBS;

/** The work of a thread, in its own module. */
export interface Job<Question extends object, Answer> {
  /**
   * The answer to one question; a job is asked one at a time. What it throws is thrown where it was asked, and ends the thread.
   * @param handedOver memory of the answer that is handed over and not copied is added to it
   */
  answer(question: Question, handedOver: ArrayBuffer[]): Answer | Promise<Answer>;
}

/** Start data of every thread. */
export interface ThreadData {
  readonly name: JobName;
  /** For the job's `startJob`. */
  readonly data: object;
}

/** A thread's message. */
export type ThreadReply<Answer> = { readonly answer: Answer } | { readonly failure: unknown };

/** Starts a thread that does one job. */
export const startThread = (name: JobName, data: object = {}): Worker => {
  const workerData: ThreadData = { name, data };
  return new Worker(new URL('../thread.ts', import.meta.url), { workerData, resourceLimits: JOBS[name].limits });
};

export interface ThreadsOptions {
  /** Starts a thread that answers each message with exactly one `ThreadReply`. */
  readonly start: () => Worker;
  /** Threads at most; each is started when it is first needed. */
  readonly most: number;
  /** Questions that may wait. */
  readonly maxWaiting: number;
  /** Milliseconds for one answer, the start of the thread included and the wait for it not. */
  readonly limitMs: number;
}

interface AskOptions {
  /** On whose behalf: shares take turns, and each has one question answered at a time while another waits. */
  readonly share: string;
  /** Aborted: a question that still waits is forgotten. */
  readonly signal: AbortSignal;
  /** Bytes of the question: they are handed over, not copied, so that nothing else may have their memory. */
  readonly bytes?: Uint8Array;
}

/** More questions wait than may. */
export class ThreadsBusy extends Error {
  override readonly name = 'ThreadsBusy';
}

interface Waiting<Question, Answer> {
  readonly message: Question;
  readonly asked: AskOptions;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: Error) => void;
}

/** Threads that compute what would stop the serving one. */
export class Threads<Question extends object, Answer> {
  readonly #options: ThreadsOptions;
  readonly #idle: Thread[] = [];
  readonly #busy = new Map<Thread, string>();
  /** By share, the one whose turn is next first. */
  readonly #waiting = new Map<string, Waiting<Question, Answer>[]>();
  #jobs = 0;
  #closed = false;

  constructor(options: ThreadsOptions) {
    this.#options = options;
  }

  /** @throws ThreadsBusy; an Error when the thread died or took too long, or when nobody waits any more */
  async ask(message: Question, asked: AskOptions): Promise<Answer> {
    const { share, signal } = asked;
    if (this.#closed || signal.aborted) throw new Error('Nobody waits for the answer.');
    if (this.#jobs >= this.#options.maxWaiting) throw new ThreadsBusy('Too many questions wait for a thread.');
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const job: Waiting<Question, Answer> = { message, asked, resolve, reject };
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
  #next(): Waiting<Question, Answer> | undefined {
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

  #forget(job: Waiting<Question, Answer>): void {
    const jobs = this.#waiting.get(job.asked.share) ?? [];
    const place = jobs.indexOf(job);
    if (place === -1) return;
    jobs.splice(place, 1);
    if (jobs.length === 0) this.#waiting.delete(job.asked.share);
    this.#jobs -= 1;
    job.reject(new Error('Nobody waits for the answer.'));
  }

  async #run(thread: Thread, { message, asked, resolve, reject }: Waiting<Question, Answer>): Promise<void> {
    this.#busy.set(thread, asked.share);
    try {
      resolve(await thread.ask<Answer>(message, { limitMs: this.#options.limitMs, bytes: asked.bytes }));
    } catch (error) {
      reject(error instanceof Error ? error : new Error(String(error)));
    }
    this.#busy.delete(thread);
    this.#idle.push(thread);
    if (!this.#closed) this.#work();
  }
}

interface ThreadQuestion {
  /** Milliseconds for the answer, the start of the thread included; absent: any time. */
  readonly limitMs?: number;
  /** Bytes of the question: they are handed over, not copied, so that nothing else may have their memory. */
  readonly bytes?: Uint8Array | undefined;
}

/** No answer came in time. */
export class ThreadTimeout extends Error {
  override readonly name = 'ThreadTimeout';
}

/**
 * A thread that answers each message with exactly one `ThreadReply`, one question at a time. It starts with the first question, and
 * again after it died. While it has no question, it keeps no process alive.
 */
export class Thread {
  readonly #start: () => Worker;
  #worker: Worker | undefined;

  constructor(start: () => Worker) {
    this.#start = start;
  }

  /** @throws ThreadTimeout, an Error when the thread ended, or what the job threw; the next question gets another thread */
  async ask<Answer>(question: object, { limitMs, bytes }: ThreadQuestion = {}): Promise<Answer> {
    this.#worker ??= this.#started();
    const worker = this.#worker;
    const { promise, resolve, reject } = Promise.withResolvers<ThreadReply<Answer>>();
    const ended = (cause: unknown): void => reject(new Error('The thread ended without an answer.', { cause }));
    const late = (): void => reject(new ThreadTimeout(`The thread took longer than ${limitMs} ms.`));
    const timer = limitMs === undefined ? undefined : setTimeout(late, limitMs);
    worker.once('message', resolve).once('error', ended).once('exit', ended);
    worker.ref();
    try {
      worker.postMessage(question, bytes?.buffer instanceof ArrayBuffer ? [bytes.buffer] : []);
      const reply = await promise;
      if ('failure' in reply) throw reply.failure;
      return reply.answer;
    } catch (error) {
      await worker.terminate(); // It may still compute, or be broken.
      throw error;
    } finally {
      clearTimeout(timer);
      worker.off('message', resolve).off('error', ended).off('exit', ended);
      worker.unref();
    }
  }

  /** Ends it now: a question that it has fails. */
  async end(): Promise<void> {
    await this.#worker?.terminate();
  }

  #started(): Worker {
    const worker = this.#start();
    worker.unref();
    worker.on('error', () => {}); // `ask` tells the waiting side.
    worker.once('exit', () => {
      if (this.#worker === worker) this.#worker = undefined;
    });
    return worker;
  }
}

/**
 * Progress of another thread's work, and whether it is still wanted: in memory that both see, so that neither waits for the
 * other.
 */
export class SharedProgress {
  readonly memory: SharedArrayBuffer;
  readonly #numbers: Int32Array;

  /** @param memory of the other side */
  constructor(memory = new SharedArrayBuffer(12)) {
    this.memory = memory;
    this.#numbers = new Int32Array(memory);
  }

  /** @returns whether the other side still wants the work */
  tell(done: number, all: number): boolean {
    Atomics.store(this.#numbers, 0, done);
    Atomics.store(this.#numbers, 1, all);
    return Atomics.load(this.#numbers, 2) === 0;
  }

  /** The numbers of the last `tell`. */
  read(): { readonly done: number; readonly all: number } {
    return { done: Atomics.load(this.#numbers, 0), all: Atomics.load(this.#numbers, 1) };
  }

  /** The work is not wanted any more. */
  stop(): void {
    Atomics.store(this.#numbers, 2, 1);
  }
}
