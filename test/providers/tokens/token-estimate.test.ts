import { once } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import { afterEach, describe, expect, it } from 'vitest';
import { startThread } from '../../../src/lib/threads.ts';
import {
  createTokenEstimator,
  type TextToCount,
  type TokenEstimator,
  type TokenEstimatorOptions,
} from '../../../src/providers/tokens/token-estimate.ts';

/** Time enough on any machine: whether it is enough is not what most of these tests are about. */
const UNHURRIED = { budgetMs: 60_000, limitMs: 60_000 };

const open: TokenEstimator[] = [];

function estimator(options: TokenEstimatorOptions = {}): TokenEstimator {
  const made = createTokenEstimator({ ...UNHURRIED, ...options });
  open.push(made);
  return made;
}

afterEach(async () => {
  for (const each of open.splice(0)) await each.close();
});

const text = (...texts: string[]): TextToCount => ({ texts, omittedBytes: 0 });
const NO_TEXT = text();

describe('an estimate of tokens', () => {
  it.each([
    ['Hello, world!', 4],
    ['antidisestablishmentarianism', 6],
    ['', 0],
    ['<|endoftext|>', 7],
  ])('has the count of the tokenizer: %j', async (counted, tokens) => {
    expect(await estimator().estimate(text(counted), text(counted))).toEqual({
      promptTokens: tokens,
      completionTokens: tokens,
      rough: false,
    });
  });

  it('has the count of the whole for a text of many pieces, and counts each text by itself', async () => {
    const long = 'The quick brown fox jumps over the lazy dog. '.repeat(1000).trimEnd();

    expect(await estimator().estimate(text(long, 'a', 'b'), text(long))).toEqual({
      promptTokens: countTokens(long) + 2,
      completionTokens: countTokens(long),
      rough: false,
    });
  });

  it('takes what was not kept, or is beyond 1,048,576 characters, by the ratio of what was counted', async () => {
    const word = ' the'; // one token
    const counted = estimator();

    const omitted = await counted.estimate(text(word.repeat(100)), { texts: [word.repeat(10)], omittedBytes: 400 });
    const huge = await counted.estimate(text(word.repeat(400_000)), text(word.repeat(10)));

    expect([omitted, huge]).toEqual([
      { promptTokens: 100, completionTokens: 110, rough: true },
      { promptTokens: 400_000, completionTokens: 10, rough: true },
    ]);
  });

  it('of ten million times one letter comes within its bound while the event loop turns', async () => {
    const letters = text('a'.repeat(10_000_000));
    let turns = 0;
    let answered = false;
    const estimate = createdWithDefaults().estimate(letters, letters);
    void estimate.finally(() => {
      answered = true;
    });
    for (; !answered; turns += 1) await setImmediate();

    const { promptTokens, completionTokens, rough } = await estimate;
    // Eight of the letters are a token.
    expect([promptTokens, completionTokens, rough]).toEqual([1_250_000, 1_250_000, true]);
    expect(turns).toBeGreaterThan(10);
  });

  it('of text that takes the tokenizer long is cut off by the budget, after one piece at least', async () => {
    const one = 'a b c d '.repeat(64).trimEnd(); // one piece of 256 tokens
    const hurried = estimator({ budgetMs: 0 });

    expect(await hurried.estimate(text(one, one, one, one), text(one, one))).toEqual({
      promptTokens: 4 * countTokens(one),
      completionTokens: 2 * countTokens(one),
      rough: true,
    });
  });

  it('is one token for four bytes when nothing was counted in time', async () => {
    expect(await estimator({ limitMs: 0 }).estimate(text('12345'), text('é', 'é', 'x'))).toEqual({
      promptTokens: 2,
      completionTokens: 2,
      rough: true,
    });
  });

  it('is one token for four bytes when too many wait, and the thread counts for the others', async () => {
    const busy = estimator({ maxWaiting: 2 });

    const estimates = await Promise.all([1, 2, 3, 4, 5].map(() => busy.estimate(text('Hello, world!!!'), NO_TEXT)));

    expect(estimates.map(({ rough }) => rough)).toEqual([false, false, false, true, true]);
    expect(estimates[4]).toEqual({ promptTokens: 4, completionTokens: 0, rough: true });
  });
});

describe('the thread that counts', () => {
  /** The threads that an estimator has started. */
  function recorded(): { workers: Worker[]; startWorker: () => Worker } {
    const workers: Worker[] = [];
    const startWorker = (): Worker => {
      const worker = startThread('countTokens');
      workers.push(worker);
      return worker;
    };
    return { workers, startWorker };
  }

  it('is started when it is first needed, and is one', async () => {
    const { workers, startWorker } = recorded();
    const counting = estimator({ startWorker });
    expect(workers).toHaveLength(0);

    await Promise.all([1, 2, 3].map(() => counting.estimate(text('a'), NO_TEXT)));

    expect(workers).toHaveLength(1);
  });

  it('leaves a guess when it dies while it counts, and is started again for the next', async () => {
    const { workers, startWorker } = recorded();
    const counting = estimator({ startWorker });
    const first = counting.estimate(text('Hello, world!'), NO_TEXT);
    while (workers.length === 0) await setImmediate();

    await workers[0]?.terminate();

    expect(await first).toEqual({ promptTokens: 4, completionTokens: 0, rough: true });
    expect(await counting.estimate(text('antidisestablishmentarianism'), NO_TEXT)).toEqual({
      promptTokens: 6,
      completionTokens: 0,
      rough: false,
    });
    expect(workers).toHaveLength(2);
  });

  it('is started again after it died at rest', async () => {
    const { workers, startWorker } = recorded();
    const counting = estimator({ startWorker });
    await counting.estimate(text('a'), NO_TEXT);

    const exit = workers[0] === undefined ? undefined : once(workers[0], 'exit');
    await workers[0]?.terminate();
    await exit;

    expect(await counting.estimate(text('a b'), NO_TEXT)).toEqual({
      promptTokens: 2,
      completionTokens: 0,
      rough: false,
    });
  });

  it('is ended when it does not answer in time: its late answer must not pass for that of the next call', async () => {
    const { workers, startWorker } = recorded();
    const hurried = estimator({ startWorker, limitMs: 0 });
    const estimate = hurried.estimate(text('Hello, world!'), NO_TEXT);
    while (workers.length === 0) await setImmediate();

    await Promise.all(workers.map((worker) => once(worker, 'exit')));

    expect(await estimate).toEqual({ promptTokens: 4, completionTokens: 0, rough: true });
  });

  it('ends when the estimator is closed: waiting and later calls get a guess', async () => {
    const { workers, startWorker } = recorded();
    const counting = estimator({ startWorker });
    const waiting = [1, 2].map(() => counting.estimate(text('Hello, world!!!'), NO_TEXT));
    while (workers.length === 0) await setImmediate();

    await counting.close();

    const guess = { promptTokens: 4, completionTokens: 0, rough: true };
    expect(await Promise.all([...waiting, counting.estimate(text('Hello, world!!!'), NO_TEXT)])).toEqual([
      guess,
      guess,
      guess,
    ]);
    expect(workers).toHaveLength(1);
  });
});

/** As the product has it. */
function createdWithDefaults(): TokenEstimator {
  const made = createTokenEstimator();
  open.push(made);
  return made;
}
