import type { Socket } from 'node:net';
import type { buildConnector } from 'undici';
import { MAX_UNHEARD_BYTES, TransportError } from './transport-error.ts';

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

  /** The same connector, whose socket is read so. */
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
