import { ApiError } from './errors.ts';

/** Work that is done one after the other, in the order in which it came. */
export interface Turns {
  /** @throws ApiError 503 when too much waits already; whatever the work throws */
  take<T>(work: () => Promise<T>): Promise<T>;
}

const busy = (): ApiError =>
  new ApiError(503, 'overloaded', 'Too many analyses and reports are waiting. Try again shortly.', {
    headers: { 'retry-after': '5' },
  });

/** @param maxWaiting how much may wait for what runs */
export function createTurns(maxWaiting = 8): Turns {
  let last: Promise<unknown> = Promise.resolve();
  let unfinished = 0;
  return {
    async take(work) {
      if (unfinished > maxWaiting) throw busy();
      unfinished += 1;
      const result = last.then(work);
      last = result.catch(() => {});
      try {
        return await result;
      } finally {
        unfinished -= 1;
      }
    },
  };
}
