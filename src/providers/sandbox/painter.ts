import { Worker } from 'node:worker_threads';
import { Threads } from '../../lib/threads.ts';
import type { Detail } from './draw-image.ts';
import type { DrawQuestion } from './draw-worker.ts';
import type { ImageSize } from './image-size.ts';

/** Draws pictures next to the serving thread, which a few of them would stop for seconds. */
export interface Painter {
  /** Pictures of one request in base64. @throws ThreadsBusy; whatever ends the drawing once the caller has left */
  draw(prompt: string, count: number, size: ImageSize, detail: Detail, signal: AbortSignal): Promise<string[]>;
  /** A draft of the first picture. @param step 0 for the roughest */
  draft(prompt: string, step: number, size: ImageSize, detail: Detail, signal: AbortSignal): Promise<string>;
  close(): Promise<void>;
}

/** Requests that may wait for a picture of another. */
const MAX_WAITING = 32;
const LIMIT_MS = 20_000;
const RESOURCE_LIMITS = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 16 };

export function createPainter(): Painter {
  const threads = new Threads<DrawQuestion, string>({
    start: () => new Worker(new URL('./draw-worker.ts', import.meta.url), { resourceLimits: RESOURCE_LIMITS }),
    most: 1,
    maxWaiting: MAX_WAITING,
    limitMs: LIMIT_MS,
  });
  let requests = 0;
  const nextShare = (): string => {
    requests += 1;
    return String(requests);
  };
  return {
    async draw(prompt, count, size, detail, signal) {
      const share = nextShare(); // Picture by picture, so that a request for one does not wait for ten of another.
      const pictures: string[] = [];
      for (let number = 0; number < count; number += 1) {
        pictures.push(await threads.ask({ prompt, number, isDraft: false, size, detail }, { share, signal }));
      }
      return pictures;
    },
    draft: (prompt, step, size, detail, signal) =>
      threads.ask({ prompt, number: step, isDraft: true, size, detail }, { share: nextShare(), signal }),
    close: () => threads.close(),
  };
}
