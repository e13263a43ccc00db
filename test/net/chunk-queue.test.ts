import { describe, expect, it } from 'vitest';
import { ChunkQueue } from '../../src/net/exchange.ts';

function queueWithLog(): { queue: ChunkQueue; log: string[] } {
  const log: string[] = [];
  const queue = new ChunkQueue({
    pause: () => log.push('pause'),
    resume: () => log.push('resume'),
    cancel: () => log.push('cancel'),
  });
  return { queue, log };
}

const KB = (count: number): Buffer => Buffer.alloc(count * 1024);

describe('ChunkQueue', () => {
  it('pauses its source once at 64 KiB and resumes it when the reader is done with all of them', async () => {
    const { queue, log } = queueWithLog();
    queue.push(KB(63));
    expect(log).toEqual([]);
    queue.push(KB(1));
    queue.push(KB(1));
    expect(log).toEqual(['pause']);
    await queue.next();
    await queue.next();
    await queue.next();
    expect(log).toEqual(['pause']);
    const fourth = queue.next();
    expect(log).toEqual(['pause', 'resume']);
    queue.push(KB(1));
    expect(await fourth).toEqual({ done: false, value: KB(1) });
  });

  it('pauses its source for chunks of one byte too, which take far more', () => {
    const { queue, log } = queueWithLog();
    for (let count = 0; count < 300; count += 1) queue.push(Buffer.from('x'));
    expect(log).toEqual(['pause']);
  });

  it('counts what the reader has in hand', async () => {
    const { queue, log } = queueWithLog();
    const first = queue.next();
    queue.push(KB(64));
    await first;
    expect(log).toEqual(['pause']);
    const second = queue.next();
    expect(log).toEqual(['pause', 'resume']);
    queue.push(KB(63));
    await second;
    queue.push(KB(1));
    expect(log).toEqual(['pause', 'resume', 'pause']);
  });

  it('hands on what is queued before it tells of a failure, and ends after it', async () => {
    const { queue, log } = queueWithLog();
    const failure = new Error('cut');
    queue.push(KB(1));
    queue.end(failure);
    expect(await queue.next()).toEqual({ done: false, value: KB(1) });
    await expect(queue.next()).rejects.toBe(failure);
    expect(await queue.next()).toEqual({ done: true, value: undefined });
    expect(log).toEqual([]);
  });

  it('wakes a waiting reader with a chunk, an end or a failure', async () => {
    const { queue } = queueWithLog();
    const first = queue.next();
    queue.push(KB(1));
    expect(await first).toEqual({ done: false, value: KB(1) });
    const second = queue.next();
    queue.end();
    expect(await second).toEqual({ done: true, value: undefined });
    const other = queueWithLog().queue;
    const third = other.next();
    other.end(new Error('cut'));
    await expect(third).rejects.toThrow('cut');
  });

  it('cancels its source once when the reader leaves, and not after the end', async () => {
    const left = queueWithLog();
    await left.queue.return();
    await left.queue.return();
    expect(left.log).toEqual(['cancel']);
    const over = queueWithLog();
    over.queue.end();
    await over.queue.return();
    expect(over.log).toEqual([]);
  });

  it('drops the rest when drained, with its source running on', async () => {
    const { queue, log } = queueWithLog();
    queue.push(KB(64));
    queue.drain();
    queue.push(KB(64));
    expect(await queue.next()).toEqual({ done: true, value: undefined });
    await queue.return();
    expect(log).toEqual(['pause', 'resume']);
  });
});
