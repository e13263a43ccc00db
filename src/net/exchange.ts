import type { Socket } from 'node:net';
import type { buildConnector, Dispatcher } from 'undici';
import { GrowingBytes } from '../lib/json.ts';
import { type EventSource, LongTexts, type ParsedJson } from './event-stream.ts';
import {
  MAX_PIECES,
  MAX_UNHEARD_BYTES,
  type Room,
  SMALL_BYTES,
  STREAM_FACTOR,
  TransportError,
  timeoutError,
  toTransportError,
} from './transport-error.ts';

/** An answer that has had more waits for those that have had less. */
const LONG_BYTES = 128 * 1024;

/**
 * A connection to an upstream, one answer at a time. What is done with an answer follows from a read of its socket, so here is
 * where no upstream takes more than its turn: reads wait for the next turn of the event loop when this one's part is over. And it
 * is ended when more comes than is heard of: the parser tells nobody of an endless status line, header, trailer or extension.
 */
export class Connection {
  /** Bytes that the parser was given since the exchange last heard of something. */
  #unheardBytes = 0;
  /** Bytes of the answer so far. */
  #bytes = 0;

  /** Returns the connector with its socket read in this way. */
  watched(connect: buildConnector.connector): buildConnector.connector {
    return (target, callback) => {
      connect(target, (...result) => {
        const [error, socket] = result;
        if (error === null) this.#watch(socket);
        callback(...result);
      });
    };
  }

  /** A request is sent: its answer comes next. */
  asked(): void {
    this.#bytes = 0;
    this.heard();
  }

  /** The head of the answer has arrived, or a piece of its body. */
  heard(): void {
    this.#unheardBytes = 0;
  }

  #watch(socket: Socket): void {
    this.asked(); // Undici reads before it asks.
    const read = socket.read.bind(socket);
    let isWaiting = false;
    const wake = (): void => {
      isWaiting = false;
      socket.emit('readable');
    };
    // Undici reads by this method alone, until it gives nothing; then it waits for the event.
    socket.read = (size?: number): unknown => {
      if (size === 0) return read(0);
      if (isTurnOver()) {
        if (!isWaiting) readLater(wake, this.#bytes > LONG_BYTES);
        isWaiting = true;
        return null;
      }
      if (this.#unheardBytes > MAX_UNHEARD_BYTES) {
        socket.destroy(new TransportError('bad_response', 'the answer is not well-formed HTTP'));
        return null;
      }
      const chunk: unknown = read(size);
      if (Buffer.isBuffer(chunk)) {
        this.#unheardBytes += chunk.length;
        this.#bytes += chunk.length;
      }
      return chunk;
    };
  }
}

/** Milliseconds that reading answers may take of one turn of the event loop, all of them together: others wait for theirs. */
const SLICE_MS = 10;

/** One in so many reads that waited is of a long answer, whatever else waits. */
const LONG_ONES_TURN = 4;

let startedAt: number | undefined;
let served = 0;

/** Reads that wait, the first one first. */
const ofShortAnswers: (() => void)[] = [];
const ofLongAnswers: (() => void)[] = [];

/** Whether reading answers has had its part of this turn. */
export function isTurnOver(): boolean {
  if (startedAt !== undefined) return performance.now() - startedAt > SLICE_MS;
  startedAt = performance.now();
  setImmediate(() => {
    startedAt = undefined;
  });
  return false;
}

/** Reads in a turn that has time left: answers that are short so far before those that have had much already. */
export function readLater(read: () => void, isLong: boolean): void {
  (isLong ? ofLongAnswers : ofShortAnswers).push(read);
  setImmediate(serveNext);
}

function serveNext(): void {
  if (isTurnOver()) {
    setImmediate(serveNext);
    return;
  }
  served += 1;
  const [first, second] =
    served % LONG_ONES_TURN === 0 ? [ofLongAnswers, ofShortAnswers] : [ofShortAnswers, ofLongAnswers];
  const read = first.shift() ?? second.shift();
  read?.();
}

/** Response headers, names in lower case. */
export type ResponseHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** An answer whose body has arrived whole. */
export interface GatheredResponse {
  readonly kind: 'gathered';
  readonly status: number;
  readonly headers: ResponseHeaders;
  /** Body of an answer that is not a success, or not a stream where one was asked for: its first 64 KiB. */
  readonly body: Buffer;
  /** The body, decoded as UTF-8 when it is read. */
  readonly text: string;
}

/** A 2xx answer of type `text/event-stream`, read as it comes. Leaving the loop early cancels the exchange. */
export interface StreamedResponse extends EventSource {
  readonly kind: 'streamed';
  readonly status: number;
  readonly headers: ResponseHeaders;
  /**
   * The reader has what it wants: what is left is read and dropped for at most a second, so that the connection can serve
   * again, and leaving the loop no longer cancels.
   */
  drain(): void;
}

export type OutboundResponse = GatheredResponse | StreamedResponse;

interface ExchangeOptions {
  readonly stream: boolean;
  /** Most bytes of a whole answer, or of one event of a stream; a stream in all may have four times as many. */
  readonly maxResponseBytes: number;
  readonly totalTimeoutMs: number;
  /** On whose behalf. */
  readonly share: string;
  readonly signal: AbortSignal;
  readonly room: Room;
  /** Secret that the request carries. */
  readonly secret: string | undefined;
  readonly parseLarge: (json: Buffer) => Promise<ParsedJson>;
}

/** An answer from its parts, as it arrived or as a thread was handed it. */
export const gatheredResponse = (status: number, headers: ResponseHeaders, body: Buffer): GatheredResponse => ({
  kind: 'gathered',
  status,
  headers,
  body,
  get text() {
    return body.toString('utf8');
  },
});

const DRAIN_MS = 1000;

/** Shorter ones are no credentials: local servers ask for a key such as `none`, which answers may well hold. */
const LEAST_SECRET = 20;

/** Writes `*` over a secret, wherever it stands. */
function blotOut(bytes: Buffer, secret: string): void {
  const { length } = Buffer.from(secret);
  for (let at = bytes.indexOf(secret); at !== -1; at = bytes.indexOf(secret, at + length)) {
    bytes.fill('*', at, at + length);
  }
}

/**
 * One request and its answer, as undici's dispatch handler. Fails once, with a TransportError, or an ApiError where there is no
 * room: the promise while there is no answer yet, the stream's reader afterwards; whatever fails it, the connection is aborted.
 */
export class Exchange implements Dispatcher.DispatchHandler {
  readonly response: Promise<OutboundResponse>;
  readonly share: string;
  /** On which it runs, known once it is dispatched. */
  connection: Connection | undefined;
  readonly #options: ExchangeOptions;
  #timer: NodeJS.Timeout;
  readonly #onAbort = (): void =>
    this.#fail(new TransportError('aborted', 'the caller went away', { sent: this.#isServed() }));
  #resolve: (response: OutboundResponse) => void = () => {};
  #reject: (error: Error) => void = () => {};
  #controller: Dispatcher.DispatchController | undefined;
  #failure: Error | undefined;
  #queue: ChunkQueue | undefined;
  #status = 0;
  #headers: ResponseHeaders = {};
  /** The body, if it is small and came in one piece, as most do; else it is gathered. */
  #only: Buffer | undefined;
  readonly #gathered = new GrowingBytes();
  #maxBytes = 0;
  /** Bytes of the body that are kept; the rest is dropped. */
  #keptBytes = Number.POSITIVE_INFINITY;
  #bytes = 0;
  #pieces = 0;
  #released = false;

  constructor(options: ExchangeOptions) {
    this.#options = options;
    this.share = options.share;
    this.response = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.#timer = setTimeout(() => this.#fail(timeoutError('total', this.#isServed())), options.totalTimeoutMs);
    options.signal.addEventListener('abort', this.#onAbort);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    this.connection?.asked();
    if (this.#failure !== undefined) controller.abort(this.#failure);
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: ResponseHeaders): void {
    if (status < 200 || this.#failure !== undefined) return;
    this.connection?.heard();
    this.#status = status;
    this.#headers = headers;
    const encoding = headers['content-encoding'];
    if (encoding !== undefined && encoding !== 'identity') {
      this.#fail(new TransportError('bad_response', 'the answer has a content encoding that was not asked for'));
      return;
    }
    const { stream, maxResponseBytes } = this.#options;
    const isSuccess = status <= 299;
    if (stream && isSuccess && isEventStream(headers['content-type'])) {
      this.#stream(controller);
      return;
    }
    this.#maxBytes = maxResponseBytes;
    if (stream || !isSuccess) this.#keptBytes = SMALL_BYTES;
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#failure !== undefined) return;
    this.connection?.heard();
    this.#bytes += chunk.length;
    this.#pieces += 1;
    if (this.#bytes > this.#maxBytes || this.#pieces > MAX_PIECES) {
      this.#fail(new TransportError('too_large', 'the answer is too large', { sent: this.#isServed() }));
    } else if (this.#queue !== undefined) {
      this.#withoutSecret(chunk);
      this.#queue.push(chunk);
    } else {
      this.#gather(chunk);
    }
  }

  #gather(chunk: Buffer): void {
    if (this.#pieces === 1 && chunk.length <= SMALL_BYTES) {
      this.#only = chunk;
      return;
    }
    if (this.#only !== undefined) this.#gathered.append(this.#only);
    this.#only = undefined;
    const missing = this.#keptBytes - this.#gathered.length;
    this.#gathered.append(chunk.length > missing ? chunk.subarray(0, missing) : chunk);
    if (this.#gathered.length > SMALL_BYTES) this.#takeRoom(this.#gathered.capacity);
  }

  onResponseEnd(): void {
    if (this.#failure !== undefined) return;
    this.#release();
    if (this.#queue !== undefined) {
      this.#queue.end();
      return;
    }
    const body = this.#only ?? this.#gathered.take();
    this.#withoutSecret(body);
    this.#resolve(gatheredResponse(this.#status, this.#headers, body));
  }

  /** Blots the secret out of a success; the words of any other answer are scrubbed instead, once they are read. */
  #withoutSecret(bytes: Buffer): void {
    const { secret = '' } = this.#options;
    if (this.#status <= 299 && secret.length >= LEAST_SECRET) blotOut(bytes, secret);
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#fail(toTransportError(error, this.#status >= 400));
  }

  /** The peer has the request, and has not said that it failed. */
  #isServed(): boolean {
    return this.#controller !== undefined && this.#status < 400;
  }

  #stream(controller: Dispatcher.DispatchController): void {
    const { maxResponseBytes, room, parseLarge } = this.#options;
    this.#maxBytes = STREAM_FACTOR * maxResponseBytes;
    const queue = new ChunkQueue({
      pause: () => controller.pause(),
      resume: () => controller.resume(),
      cancel: () => this.#fail(new TransportError('aborted', 'the reader left')),
    });
    this.#queue = queue;
    this.#resolve({
      kind: 'streamed',
      status: this.#status,
      headers: this.#headers,
      chunks: queue,
      longTexts: new LongTexts(),
      means: { maxEventBytes: maxResponseBytes, room, parseLarge },
      drain: () => this.#drain(queue),
    });
  }

  #takeRoom(bytes: number): void {
    try {
      this.#options.room(bytes);
    } catch (error) {
      this.#fail(error instanceof Error ? error : new Error(String(error)));
    }
  }

  #drain(queue: ChunkQueue): void {
    if (this.#released) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#fail(timeoutError('total', this.#isServed())), DRAIN_MS);
    queue.drain();
  }

  #fail(error: Error): void {
    if (this.#failure !== undefined) return;
    this.#failure = error;
    this.#gathered.take();
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

/** The producer of a queue: told when to wait, when to go on, and that nobody reads any more. */
interface ChunkSource {
  pause(): void;
  resume(): void;
  cancel(): void;
}

const HIGH_WATER_BYTES = 64 * 1024;
/** Memory that a chunk takes in addition to its bytes: it is a view of a larger buffer. */
const CHUNK_OVERHEAD_BYTES = 256;

interface Waiter {
  resolve(result: IteratorResult<Buffer, undefined>): void;
  reject(error: Error): void;
}

/**
 * Chunks between a producer that pushes and one consumer that pulls, bounded by back-pressure. Leaving the loop early
 * (`break`, `return`, a throw) cancels the producer.
 */
export class ChunkQueue implements AsyncIterableIterator<Buffer, undefined> {
  readonly #source: ChunkSource;
  #chunks: Buffer[] = [];
  /** Memory of what is queued and of what the reader has in hand. */
  #bytes = 0;
  #inHand = 0;
  #paused = false;
  #ended = false;
  #error: Error | undefined;
  #waiter: Waiter | undefined;

  constructor(source: ChunkSource) {
    this.#source = source;
  }

  push(chunk: Buffer): void {
    if (this.#ended) return;
    const waiter = this.#waiter;
    const size = chunk.length + CHUNK_OVERHEAD_BYTES;
    this.#bytes += size;
    if (waiter !== undefined) {
      this.#waiter = undefined;
      this.#inHand = size;
      waiter.resolve({ done: false, value: chunk });
    } else {
      this.#chunks.push(chunk);
    }
    if (!this.#paused && this.#bytes >= HIGH_WATER_BYTES) {
      this.#paused = true;
      this.#source.pause();
    }
  }

  /** No more chunks; with an error, the reader gets it after what is queued. */
  end(error?: Error): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#error = error;
    const waiter = this.#waiter;
    if (waiter === undefined) return;
    this.#waiter = undefined;
    if (error === undefined) {
      waiter.resolve({ done: true, value: undefined });
    } else {
      this.#error = undefined;
      waiter.reject(error);
    }
  }

  /** Asking for the next chunk means being done with the one before. */
  next(): Promise<IteratorResult<Buffer, undefined>> {
    this.#bytes -= this.#inHand;
    const value = this.#chunks.shift();
    this.#inHand = value === undefined ? 0 : value.length + CHUNK_OVERHEAD_BYTES;
    if (value !== undefined) return Promise.resolve({ done: false, value });
    if (this.#error !== undefined) {
      const error = this.#error;
      this.#error = undefined;
      return Promise.reject(error);
    }
    if (this.#ended) return Promise.resolve({ done: true, value: undefined });
    return new Promise((resolve, reject) => {
      this.#waiter = { resolve, reject };
      this.#resume();
    });
  }

  /** Drops what is queued and what still comes; the producer runs on to its end. */
  drain(): void {
    this.#chunks = [];
    this.end();
    this.#resume();
  }

  #resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#source.resume();
  }

  return(): Promise<IteratorResult<Buffer, undefined>> {
    this.#chunks = [];
    this.#error = undefined;
    if (!this.#ended) {
      this.end();
      this.#source.cancel();
    }
    return Promise.resolve({ done: true, value: undefined });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }
}
