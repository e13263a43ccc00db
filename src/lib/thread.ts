import type { Worker } from 'node:worker_threads';

export interface ThreadQuestion {
  /** Milliseconds for the answer, the start of the thread included; absent: any time. */
  readonly limitMs?: number;
  /** Of the question: they are handed over, not copied, so that nothing else may have their memory. */
  readonly bytes?: Uint8Array | undefined;
}

/** No answer came in time. */
export class ThreadTimeout extends Error {
  override readonly name = 'ThreadTimeout';
}

/**
 * A thread that answers each message with exactly one message, one question at a time. It starts with the first question, and
 * again after it died. While it has no question, it keeps no process alive.
 */
export class Thread<Question extends object, Answer> {
  readonly #start: () => Worker;
  #worker: Worker | undefined;

  constructor(start: () => Worker) {
    this.#start = start;
  }

  /** @throws ThreadTimeout, or an Error when the thread ended; either way the next question gets another thread */
  async ask(question: Question, { limitMs, bytes }: ThreadQuestion = {}): Promise<Answer> {
    this.#worker ??= this.#started();
    const worker = this.#worker;
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const ended = (cause: unknown): void => reject(new Error('The thread ended without an answer.', { cause }));
    const late = (): void => reject(new ThreadTimeout(`The thread took longer than ${limitMs} ms.`));
    const timer = limitMs === undefined ? undefined : setTimeout(late, limitMs);
    worker.once('message', resolve).once('error', ended).once('exit', ended);
    worker.ref();
    try {
      worker.postMessage(question, bytes?.buffer instanceof ArrayBuffer ? [bytes.buffer] : []);
      return await promise;
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
