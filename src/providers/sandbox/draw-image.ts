import { createHash } from 'node:crypto';
import { encode } from 'fast-png';

/** How finely a picture is drawn. */
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

type Colour = [red: number, green: number, blue: number];

/**
 * A PNG of the prompt's own pattern: soft bands, with a mirrored emblem in the middle. Colours, bands and emblem come from a hash
 * of the prompt, the level of detail and the picture's number, so the same request gives the same bytes.
 */
export function drawImage(prompt: string, number: number, { width, height }: ImageSize, detail: Detail): Uint8Array {
  const style = STYLES[detail];
  const seed = seedOf(prompt, number, detail);
  const data = drawBands({ width, height }, seed, style.shades);
  drawEmblem(data, { width, height }, seed, style);
  return encode({ width, height, data, depth: 8, channels: 1, palette: paletteOf(seed, style.shades) });
}

/** A draft of the same picture: its background alone, in more shades from step to step. */
export function drawDraft(prompt: string, size: ImageSize, detail: Detail, step: number): Uint8Array {
  const shades = Math.min(STYLES[detail].shades, 2 ** (step + 2));
  const seed = seedOf(prompt, 0, detail);
  const data = drawBands(size, seed, shades);
  return encode({ ...size, data, depth: 8, channels: 1, palette: paletteOf(seed, shades) });
}

const seedOf = (prompt: string, number: number, detail: Detail): Buffer =>
  createHash('shake256', { outputLength: 64 })
    .update(JSON.stringify([prompt, number, detail]))
    .digest();

/** A byte of the seed as a part of one. */
const partAt = (seed: Buffer, position: number): number => (seed[position] ?? 0) / 255;

/** The background: the sum of a wave across and one down, in as many steps as there are shades. */
function drawBands({ width, height }: ImageSize, seed: Buffer, shades: number): Uint8Array {
  const across = wave(width, 1 + 4 * partAt(seed, 0), partAt(seed, 1));
  const down = wave(height, 1 + 4 * partAt(seed, 2), partAt(seed, 3));
  const data = new Uint8Array(width * height);
  let position = 0;
  for (const vertical of down) {
    for (const horizontal of across) data[position++] = Math.floor((horizontal + vertical) * shades);
  }
  return data;
}

/** Values from 0 to below a half. */
const wave = (length: number, turns: number, phase: number): Float64Array =>
  Float64Array.from({ length }, (_, step) => 0.2499 * (1 + Math.sin(2 * Math.PI * (turns * (step / length) + phase))));

/** A symmetric figure over the middle half of the picture, in the colour that follows the shades. */
function drawEmblem(data: Uint8Array, { width, height }: ImageSize, seed: Buffer, { shades, cells }: Style): void {
  const cell = Math.max(1, Math.floor(Math.min(width, height) / 2 / cells));
  const left = Math.floor((width - cell * cells) / 2);
  const top = Math.floor((height - cell * cells) / 2);
  for (let line = 0; line < cells; line++) {
    for (let column = 0; column < cells; column++) {
      if (!isFilled(seed, line, Math.min(column, cells - 1 - column), cells)) continue;
      for (let y = top + line * cell; y < top + (line + 1) * cell; y++) {
        const start = y * width + left + column * cell;
        data.fill(shades, start, start + cell);
      }
    }
  }
}

/** One bit of the seed for each cell of the left half. */
function isFilled(seed: Buffer, line: number, column: number, cells: number): boolean {
  const bit = line * (cells / 2) + column;
  return (((seed[16 + (bit >> 3)] ?? 0) >> (bit & 7)) & 1) === 1;
}

/** From a dark to a light tint of one hue, then the emblem's colour, of the hue across. */
function paletteOf(seed: Buffer, shades: number): Colour[] {
  const hue = partAt(seed, 4);
  const tints = Array.from({ length: shades }, (_, shade) => colour(hue, 0.25 + 0.7 * (shade / shades)));
  return [...tints, colour(hue + 0.5, 0.6)];
}

/** Red, green and blue of a hue (0 to 1, round and round) at a lightness between 0 and 1. */
function colour(hue: number, lightness: number): Colour {
  const channel = (shift: number): number => {
    const strength = 0.5 + 0.5 * Math.cos(2 * Math.PI * (hue + shift));
    return Math.round(255 * (lightness * (0.4 + 0.6 * strength)));
  };
  return [channel(0), channel(1 / 3), channel(2 / 3)];
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
