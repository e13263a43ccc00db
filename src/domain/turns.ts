import { ApiError } from './errors.ts';

/** Work that is done one after the other, in the order in which it came. */
export interface Turns {
  /** @throws ApiError 503 when too much waits already, of all or of this organization; whatever the work throws */
  take<T>(organizationId: string, work: () => Promise<T>): Promise<T>;
}

const busy = (): ApiError =>
  new ApiError(503, 'overloaded', 'Too many analyses and reports are waiting. Try again shortly.', {
    headers: { 'retry-after': '5' },
  });

/**
 * @param maxWaiting how much may wait for what runs
 * @param maxWaitingEach how much of that may be one organization's
 */
export function createTurns(maxWaiting = 8, maxWaitingEach = 2): Turns {
  let last: Promise<unknown> = Promise.resolve();
  /** The organizations of what is not finished, in order; the first one's runs. */
  const unfinished: string[] = [];
  return {
    async take(organizationId, work) {
      const waitingOfTheirs = unfinished.slice(1).filter((id) => id === organizationId).length;
      if (unfinished.length > maxWaiting) throw busy();
      if (unfinished.length > 0 && waitingOfTheirs >= maxWaitingEach) throw busy();
      unfinished.push(organizationId);
      const result = last.then(work);
      last = result.catch(() => {});
      try {
        return await result;
      } finally {
        unfinished.shift();
      }
    },
  };
}
