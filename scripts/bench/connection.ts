import { connect, type Socket } from 'node:net';

/** How one exchange went: nanoseconds from the request's first byte written to the answer's last byte read. */
export interface Exchange {
  readonly status: number;
  readonly nanoseconds: number;
  /** The last bytes of the answer as it came over the wire. */
  readonly tail: string;
}

const TIMEOUT_MS = 10_000;
const TAIL_BYTES = 64;
const LAST_CHUNK = '\r\n0\r\n\r\n';
const HEAD_END = '\r\n\r\n';

/** Follows one answer through its head and its body, whatever pieces it comes in. */
class Answer {
  status = 0;
  tail = '';
  #head = '';
  #remaining: number | undefined;

  /** Takes the next piece; true once the answer is complete. */
  take(piece: Buffer): boolean {
    if (this.status !== 0) return this.#takeBody(piece);
    this.#head += piece.toString('latin1');
    const end = this.#head.indexOf(HEAD_END);
    if (end === -1) return false;
    const bodyBytes = this.#head.length - end - HEAD_END.length;
    this.status = Number(this.#head.slice(9, 12));
    const length = /\r\ncontent-length: *(\d+)/i.exec(this.#head.slice(0, end))?.[1];
    if (length !== undefined) this.#remaining = Number(length);
    return this.#takeBody(piece.subarray(piece.length - bodyBytes));
  }

  #takeBody(piece: Buffer): boolean {
    this.tail = (this.tail + piece.toString('latin1', Math.max(0, piece.length - TAIL_BYTES))).slice(-TAIL_BYTES);
    if (this.#remaining === undefined) return this.tail.endsWith(LAST_CHUNK);
    this.#remaining -= piece.length;
    return this.#remaining <= 0;
  }
}

/**
 * A kept-alive connection that does one exchange at a time, as lightly as Node can: what it costs itself is part of every
 * figure. Understands answers with a content length and chunked ones, from our own servers, and no more of HTTP.
 */
export class Connection {
  readonly #socket: Socket;
  readonly #onPiece: (tail: string) => void;
  #answer = new Answer();
  #started = 0n;
  #resolve: (exchange: Exchange) => void = () => {};
  #reject: (error: Error) => void = () => {};

  /** @param onPiece told the last bytes of the answer whenever a piece of it has come that does not end it */
  constructor(port: number, onPiece: (tail: string) => void = () => {}) {
    this.#onPiece = onPiece;
    const buffer = Buffer.allocUnsafe(65_536);
    const callback = (length: number): boolean => this.#read(buffer.subarray(0, length));
    this.#socket = connect({ port, host: '127.0.0.1', noDelay: true, onread: { buffer, callback } });
    this.#socket.setTimeout(TIMEOUT_MS, () => this.#socket.destroy(new Error(`no answer in ${TIMEOUT_MS} ms`)));
    this.#socket.on('error', (error) => this.#reject(error));
    this.#socket.on('close', () => this.#reject(new Error('the connection was closed')));
  }

  /** Sends a whole raw request and reads its whole answer. Rejects when the connection fails. */
  exchange(request: string): Promise<Exchange> {
    return new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
      this.#answer = new Answer();
      this.#started = process.hrtime.bigint();
      this.#socket.write(request, 'latin1');
    });
  }

  close(): void {
    this.#socket.destroy();
  }

  #read(piece: Buffer): boolean {
    if (this.#answer.take(piece)) {
      const nanoseconds = Number(process.hrtime.bigint() - this.#started);
      this.#resolve({ status: this.#answer.status, nanoseconds, tail: this.#answer.tail });
    } else this.#onPiece(this.#answer.tail);
    return true;
  }
}
