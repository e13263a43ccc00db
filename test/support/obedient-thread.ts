// A thread that does as it is asked.
import { parentPort } from 'node:worker_threads';
import type { ThreadReply } from '../../src/lib/threads.ts';

export interface Order {
  readonly say?: string;
  readonly bytes?: Uint8Array;
  readonly act?: 'throw' | 'exit' | 'compute without end';
}

parentPort?.on('message', ({ say, bytes, act }: Order) => {
  if (act === 'throw') throw new Error('as it was told');
  if (act === 'exit') process.exit(1);
  if (act === 'compute without end') for (;;);
  const reply: ThreadReply<string | number | undefined> = { answer: say ?? bytes?.length };
  parentPort?.postMessage(reply);
});
