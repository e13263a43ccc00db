import { createHash } from 'node:crypto';
import { Turns } from '../../domain/turns.ts';
import { loadSharp } from '../../lib/sharp.ts';

/** Detail of a drawn picture. */
export type Detail = 'plain' | 'fine';

interface Style {
  /** Colours of the background, from its darkest to its lightest. */
  readonly shades: number;
  /** Cells of the emblem along each side; even, for its left half is mirrored. */
  readonly cells: number;
}

const STYLES: Readonly<Record<Detail, Style>> = {
  plain: { shades: 16, cells: 8 },
  fine: { shades: 64, cells: 14 },
};

/** One picture of a prompt. */
export interface Subject {
  readonly prompt: string;
  readonly size: ImageSize;
  readonly detail: Detail;
}

/** Pictures that may wait, of all requests; each request has one picture drawn at a time. */
const MAX_WAITING = 32;
const MAX_WAIT_MS = 20_000;

/**
 * Draws pictures, one at a time: each takes one of the threads that also look up names, read and write files and hash passwords.
 * Requests take turns, so that one for a single picture does not wait for ten of another.
 */
export class Painter {
  readonly #turns = new Turns({ what: 'pictures', maxWaiting: MAX_WAITING, maxWaitMs: MAX_WAIT_MS });
  #requests = 0;

  /** The pictures of one request in base64. @throws ApiError 503; the reason of `signal` once the caller has left */
  async draw(subject: Subject, count: number, signal: AbortSignal): Promise<string[]> {
    const request = this.#nextRequest();
    const pictures: string[] = [];
    for (let number = 0; number < count; number += 1) {
      pictures.push(await this.#png(pictureOf(subject, number), request, signal));
    }
    return pictures;
  }

  /** A draft of the first picture: its background alone, in more shades from step to step. @param step 0 for the roughest */
  draft(subject: Subject, step: number, signal: AbortSignal): Promise<string> {
    const shades = Math.min(STYLES[subject.detail].shades, 2 ** (step + 2));
    return this.#png(
      svg(subject.size, background(subject.size, seedOf(subject, 0), shades)),
      this.#nextRequest(),
      signal,
    );
  }

  #nextRequest(): string {
    this.#requests += 1;
    return String(this.#requests);
  }

  #png(drawing: string, request: string, signal: AbortSignal): Promise<string> {
    return this.#turns.take(request, async () => {
      signal.throwIfAborted();
      const sharp = await loadSharp();
      return (await sharp(Buffer.from(drawing)).removeAlpha().png().toBuffer()).toString('base64');
    });
  }
}

/**
 * The prompt's own pattern: rings, with a mirrored emblem in the middle. Colours, rings and emblem come from a hash of the prompt,
 * the level of detail and the picture's number, so the same request gives the same picture.
 */
function pictureOf(subject: Subject, number: number): string {
  const style = STYLES[subject.detail];
  const seed = seedOf(subject, number);
  return svg(subject.size, background(subject.size, seed, style.shades) + emblem(subject.size, seed, style));
}

/** Without blurred edges, so that the picture has no other colours than those in the drawing. */
const svg = ({ width, height }: ImageSize, shapes: string): string =>
  `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" shape-rendering="crispEdges">${shapes}</svg>`;

const seedOf = ({ prompt, detail }: Subject, number: number): Buffer =>
  createHash('shake256', { outputLength: 64 })
    .update(JSON.stringify([prompt, number, detail]))
    .digest();

/** A byte of the seed as a part of one. */
const partAt = (seed: Buffer, position: number): number => (seed[position] ?? 0) / 255;

/** A colour of the prompt's hue, or of the one `across` degrees from it. @param lightness in percent */
const colour = (seed: Buffer, lightness: number, across = 0): string =>
  `hsl(${(360 * partAt(seed, 4) + across) % 360} 60% ${lightness}%)`;

/** Rings around a point of the picture, from a dark one to the lightest in the middle. */
function background({ width, height }: ImageSize, seed: Buffer, shades: number): string {
  const [x, y] = [width * partAt(seed, 0), height * partAt(seed, 1)];
  const radius = Math.hypot(width, height) * (0.6 + 0.4 * partAt(seed, 2));
  const rings = Array.from({ length: shades }, (_, shade) => {
    const fill = colour(seed, 25 + (70 * shade) / shades);
    if (shade === 0) return `<rect width="100%" height="100%" fill="${fill}"/>`;
    return `<circle cx="${x}" cy="${y}" r="${radius * (1 - shade / shades)}" fill="${fill}"/>`;
  });
  return rings.join('');
}

/** A symmetric figure over the middle half of the picture, in the colour opposite to the background's. */
function emblem({ width, height }: ImageSize, seed: Buffer, { cells }: Style): string {
  const cell = Math.max(1, Math.floor(Math.min(width, height) / 2 / cells));
  const left = Math.floor((width - cell * cells) / 2);
  const top = Math.floor((height - cell * cells) / 2);
  const squares: string[] = [];
  for (let line = 0; line < cells; line++) {
    for (let column = 0; column < cells; column++) {
      if (!isFilled(seed, line, Math.min(column, cells - 1 - column), cells)) continue;
      squares.push(`M${left + column * cell} ${top + line * cell}h${cell}v${cell}h${-cell}z`);
    }
  }
  return `<path d="${squares.join('')}" fill="${colour(seed, 60, 180)}"/>`;
}

/** One bit of the seed for each cell of the left half. */
function isFilled(seed: Buffer, line: number, column: number, cells: number): boolean {
  const bit = line * (cells / 2) + column;
  return (((seed[16 + (bit >> 3)] ?? 0) >> (bit & 7)) & 1) === 1;
}

/** A picture's sides in pixels. */
export interface ImageSize {
  readonly width: number;
  readonly height: number;
}

const MIN_SIDE = 16;
export const MAX_SIDE = 2048;
const DEFAULT_SIDE = 1024;
const SQUARE: ImageSize = { width: DEFAULT_SIDE, height: DEFAULT_SIDE };

const SIZE = /^([0-9]{1,5})x([0-9]{1,5})$/;

const isSide = (side: number): boolean => side >= MIN_SIDE && side <= MAX_SIDE;

/**
 * The size that a request asks for, 1024x1024 without one; a stated size outweighs an aspect ratio, which makes the longer side
 * 1024 pixels. Undefined for what the sandbox does not draw: sides of 16 to 2048 pixels only.
 */
export function imageSize(size: string | null | undefined, ratio: string | null | undefined): ImageSize | undefined {
  if (size === undefined || size === null || size === 'auto') return ratio ? ofRatio(ratio) : SQUARE;
  const [, width, height] = SIZE.exec(size)?.map(Number) ?? [];
  if (width === undefined || height === undefined) return undefined;
  return isSide(width) && isSide(height) ? { width, height } : undefined;
}

function ofRatio(ratio: string): ImageSize | undefined {
  const [across = 0, down = 0] = ratio.split(':').map(Number);
  if (across === 0 || down === 0) return undefined;
  const unit = DEFAULT_SIDE / Math.max(across, down);
  const side = (parts: number): number => Math.max(MIN_SIDE, Math.round(parts * unit));
  return { width: side(across), height: side(down) };
}
