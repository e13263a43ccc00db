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
