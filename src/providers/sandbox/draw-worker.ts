import { parentPort } from 'node:worker_threads';
import { type Detail, drawDraft, drawImage, type ImageSize } from './draw-image.ts';

/** One picture, or a draft of it. */
export interface DrawQuestion {
  readonly prompt: string;
  /** The picture's, or the draft's step. */
  readonly number: number;
  readonly isDraft: boolean;
  readonly size: ImageSize;
  readonly detail: Detail;
}

parentPort?.on('message', ({ prompt, number, isDraft, size, detail }: DrawQuestion) => {
  const file = isDraft ? drawDraft(prompt, size, detail, number) : drawImage(prompt, number, size, detail);
  parentPort?.postMessage(Buffer.from(file).toString('base64'));
});
