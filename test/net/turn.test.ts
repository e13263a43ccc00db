import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { isTurnOver, readLater } from '../../src/net/exchange.ts';

/** Keeps the thread busy for longer than reads may. */
function work(): void {
  const until = performance.now() + 20;
  while (performance.now() < until);
}

describe('a turn of the event loop', () => {
  it('is over for reads once they have taken their part of it, and the next one is not', async () => {
    await turn();
    expect(isTurnOver()).toBe(false);
    work();
    expect(isTurnOver()).toBe(true);
    await turn();
    expect(isTurnOver()).toBe(false);
  });

  it('serves one long read of those that wait, and no read is forgotten', async () => {
    const order: string[] = [];
    const { promise, resolve } = Promise.withResolvers<void>();
    const read = (name: string) => () => {
      order.push(name);
      work();
      if (order.length === 12) resolve();
    };
    let turns = 0;
    const counting = (async () => {
      for (; order.length < 12; turns += 1) await turn();
    })();
    for (let place = 0; place < 4; place += 1) readLater(read('long'), true);
    for (let place = 0; place < 8; place += 1) readLater(read('short'), false);
    await promise;
    await counting;

    expect(turns).toBeGreaterThanOrEqual(11);
    // Three short ones before each long one, as long as there are short ones.
    expect(order.slice(0, 8).filter((name) => name === 'long')).toHaveLength(2);
    expect(order.filter((name) => name === 'short')).toHaveLength(8);
  });
});
