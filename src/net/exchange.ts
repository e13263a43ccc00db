import type { Dispatcher } from 'undici';
import { ChunkQueue } from './chunk-queue.ts';
import { TransportError, timeoutError, toTransportError } from './transport-error.ts';

/** Response headers, names in lower case. */
export type ResponseHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** An answer whose body has arrived whole, decoded as UTF-8. */
export interface GatheredResponse {
  readonly kind: 'gathered';
  readonly status: number;
  readonly headers: ResponseHeaders;
  readonly text: string;
}

/** A 2xx answer of type `text/event-stream`, read as it comes. Leaving the loop early cancels the exchange. */
export interface StreamedResponse {
  readonly kind: 'streamed';
  readonly status: number;
  readonly headers: ResponseHeaders;
  readonly chunks: AsyncIterable<Buffer>;
  /**
   * The reader has what it wants: what is left is read and dropped for at most a second, so that the connection can serve
   * again, and leaving the loop no longer cancels.
   */
  drain(): void;
}

export type OutboundResponse = GatheredResponse | StreamedResponse;

export interface ExchangeOptions {
  readonly stream: boolean;
  readonly maxResponseBytes: number;
  readonly totalTimeoutMs: number;
  readonly signal: AbortSignal;
}

const DRAIN_MS = 1000;

/**
 * One request and its answer, as undici's dispatch handler. Fails once, with a TransportError: the promise while there is no
 * answer yet, the stream's reader afterwards; and whatever fails it, the upstream connection is aborted.
 */
export class Exchange implements Dispatcher.DispatchHandler {
  readonly response: Promise<OutboundResponse>;
  readonly #options: ExchangeOptions;
  #timer: NodeJS.Timeout;
  readonly #onAbort = (): void =>
    this.#fail(new TransportError('aborted', 'the caller went away', { sent: this.#isServed() }));
  #resolve: (response: OutboundResponse) => void = () => {};
  #reject: (error: TransportError) => void = () => {};
  #controller: Dispatcher.DispatchController | undefined;
  #failure: TransportError | undefined;
  #queue: ChunkQueue | undefined;
  #status = 0;
  #headers: ResponseHeaders = {};
  #chunks: Buffer[] = [];
  #bytes = 0;
  #released = false;

  constructor(options: ExchangeOptions) {
    this.#options = options;
    this.response = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.#timer = setTimeout(() => this.#fail(timeoutError('total', this.#isServed())), options.totalTimeoutMs);
    options.signal.addEventListener('abort', this.#onAbort);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#failure !== undefined) controller.abort(this.#failure);
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: ResponseHeaders): void {
    if (status < 200 || this.#failure !== undefined) return;
    this.#status = status;
    this.#headers = headers;
    const encoding = headers['content-encoding'];
    if (encoding !== undefined && encoding !== 'identity') {
      this.#fail(new TransportError('bad_response', 'the answer has a content encoding that was not asked for'));
      return;
    }
    if (!this.#options.stream || status > 299 || !isEventStream(headers['content-type'])) return;
    const queue = new ChunkQueue({
      pause: () => controller.pause(),
      resume: () => controller.resume(),
      cancel: () => this.#fail(new TransportError('aborted', 'the reader left')),
    });
    this.#queue = queue;
    this.#resolve({ kind: 'streamed', status, headers, chunks: queue, drain: () => this.#drain(queue) });
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#failure !== undefined) return;
    this.#bytes += chunk.length;
    if (this.#bytes > this.#options.maxResponseBytes) {
      this.#fail(new TransportError('too_large', 'the answer is too large', { sent: this.#isServed() }));
    } else if (this.#queue !== undefined) {
      this.#queue.push(chunk);
    } else {
      this.#chunks.push(chunk);
    }
  }

  onResponseEnd(): void {
    if (this.#failure !== undefined) return;
    this.#release();
    if (this.#queue !== undefined) {
      this.#queue.end();
      return;
    }
    const [first] = this.#chunks;
    const body = first !== undefined && this.#chunks.length === 1 ? first : Buffer.concat(this.#chunks, this.#bytes);
    const text = body.toString('utf8');
    this.#resolve({ kind: 'gathered', status: this.#status, headers: this.#headers, text });
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#fail(toTransportError(error, this.#status >= 400));
  }

  /** The peer has the request, and has not said that it failed. */
  #isServed(): boolean {
    return this.#controller !== undefined && this.#status < 400;
  }

  #drain(queue: ChunkQueue): void {
    if (this.#released) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#fail(timeoutError('total', this.#isServed())), DRAIN_MS);
    queue.drain();
  }

  #fail(error: TransportError): void {
    if (this.#failure !== undefined) return;
    this.#failure = error;
    this.#chunks = [];
    this.#release();
    if (this.#queue !== undefined) this.#queue.end(error);
    else this.#reject(error);
    this.#controller?.abort(error);
  }

  #release(): void {
    this.#released = true;
    clearTimeout(this.#timer);
    this.#options.signal.removeEventListener('abort', this.#onAbort);
  }
}

function isEventStream(contentType: string | string[] | undefined): boolean {
  return typeof contentType === 'string' && /^\s*text\/event-stream\s*(;|$)/i.test(contentType);
}
