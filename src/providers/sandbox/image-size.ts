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
