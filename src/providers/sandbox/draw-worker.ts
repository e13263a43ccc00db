import { parentPort } from 'node:worker_threads';
import { type Detail, drawImage } from './draw-image.ts';
import type { ImageSize } from './image-size.ts';

/** One picture. */
export interface DrawQuestion {
  readonly prompt: string;
  readonly number: number;
  readonly size: ImageSize;
  readonly detail: Detail;
}

parentPort?.on('message', ({ prompt, number, size, detail }: DrawQuestion) => {
  parentPort?.postMessage(Buffer.from(drawImage(prompt, number, size, detail)).toString('base64'));
});
