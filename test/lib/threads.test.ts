import { Worker } from 'node:worker_threads';
import { afterEach, describe, expect, it } from 'vitest';
import { Threads, ThreadsBusy, type ThreadsOptions } from '../../src/lib/threads.ts';
import type { Order } from '../support/obedient-thread.ts';

type Obedient = Threads<Order, string | number>;

const open: Obedient[] = [];

function threads(options: Partial<ThreadsOptions> = {}): Obedient {
  const script = new URL('../support/obedient-thread.ts', import.meta.url);
  const made: Obedient = new Threads({
    start: () => new Worker(script, { resourceLimits: { maxOldGenerationSizeMb: 64 } }),
    most: 1,
    maxWaiting: 100,
    limitMs: 60_000,
    ...options,
  });
  open.push(made);
  return made;
}

afterEach(async () => {
  for (const each of open.splice(0)) await each.close();
});

const NEVER = new AbortController().signal;
const ask = (of: Obedient, order: Order, share = 'a', signal = NEVER) => of.ask(order, { share, signal });

describe('threads', () => {
  it('answer each question, one after the other on each of them', async () => {
    const both = threads({ most: 2 });

    const words = Array.from({ length: 20 }, (_, place) => `${place}`);
    const answers = words.map((say) => ask(both, { say }, `share ${Number(say) % 3}`));

    expect(await Promise.all(answers)).toEqual(words);
  });

  it('are handed bytes, which are gone here', async () => {
    const bytes = Buffer.alloc(100_000);

    expect(await threads().ask({ bytes }, { share: 'a', signal: NEVER, bytes })).toBe(100_000);
    expect(bytes.length).toBe(0);
  });

  it('let shares take turns: who asks once does not wait for all that another has asked', async () => {
    const one = threads();
    const order: string[] = [];
    const note = async (share: string): Promise<void> => {
      await ask(one, { say: share }, share);
      order.push(share);
    };

    await Promise.all([...Array.from({ length: 5 }, () => note('greedy')), note('modest'), note('other')]);

    expect(order).toEqual(['greedy', 'greedy', 'modest', 'other', 'greedy', 'greedy', 'greedy']);
  });

  it('leave one free for the others while a share has a question with another', async () => {
    const both = threads({ most: 2, limitMs: 5000 });
    const endless = [1, 2].map(() => ask(both, { act: 'compute without end' }, 'greedy').catch(String));

    expect(await ask(both, { say: 'served' }, 'modest')).toBe('served');
    await both.close();
    expect((await Promise.all(endless)).length).toBe(2);
  });

  it.each<[string, NonNullable<Order['act']>]>([
    ['throws', 'throw'],
    ['exits', 'exit'],
    ['does not answer in time', 'compute without end'],
  ])('fail the question at which one %s, and serve the next', async (_, act) => {
    const one = threads({ limitMs: 3000 });
    const next = ask(one, { say: 'first' }).then(() =>
      Promise.allSettled([ask(one, { act }), ask(one, { say: 'next' })]),
    );

    expect(await next).toMatchObject([{ status: 'rejected' }, { status: 'fulfilled', value: 'next' }]);
  });

  it('refuse what is more than may wait', async () => {
    const one = threads({ maxWaiting: 2 });

    const answers = await Promise.allSettled([1, 2, 3, 4].map((number) => ask(one, { say: `${number}` })));

    expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'fulfilled', 'rejected']);
    expect(answers[3]).toMatchObject({ reason: expect.any(ThreadsBusy) });
  });

  it('forget a question that waits when nobody waits for its answer any more', async () => {
    const one = threads({ maxWaiting: 1 });
    const leaving = new AbortController();
    const first = ask(one, { say: 'first' });
    const left = ask(one, { say: 'left' }, 'a', leaving.signal);
    leaving.abort();

    await expect(left).rejects.toThrow('Nobody waits');
    expect(await Promise.all([first, ask(one, { say: 'last' })])).toEqual(['first', 'last']);
  });

  it('fail all that waits, and all that comes, once they are closed', async () => {
    const one = threads();
    const asked = [1, 2].map((number) => ask(one, { say: `${number}` }));
    const failed = Promise.allSettled(asked);

    await one.close();

    expect((await failed).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    await expect(ask(one, { say: 'late' })).rejects.toThrow('Nobody waits');
  });
});
