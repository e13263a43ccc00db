import type { ImageRequest } from '../../generated/types.ts';
import { notTakenByProvider } from './upstream-error.ts';

/** The ratios that every Gemini image model documents. */
const RATIOS = ['1:1', '2:3', '3:2', '3:4', '4:3', '4:5', '5:4', '9:16', '16:9', '21:9'] as const;

const SIZE = /^(\d{1,5})x(\d{1,5})$/;

const ratioOf = (text: string): number => {
  const [width, height] = text.split(':');
  return Number(width) / Number(height);
};

/** The documented ratio nearest to a size in pixels. @throws UpstreamError for text that is no size */
function nearestRatio(size: string): string {
  const [, width, height] = SIZE.exec(size) ?? [];
  const wanted = Math.log(Number(width) / Number(height));
  if (!Number.isFinite(wanted)) throw notTakenByProvider('The size is not a width and a height in pixels.');
  const distance = (ratio: string): number => Math.abs(Math.log(ratioOf(ratio)) - wanted);
  return RATIOS.reduce<string>((nearest, ratio) => (distance(ratio) < distance(nearest) ? ratio : nearest), '1:1');
}

/** What models that draw by a ratio choose themselves, and what they do anyway. */
const THEIR_OWN: Readonly<Record<string, unknown>> = {
  background: 'auto',
  complexity: undefined,
  frame_duration_ms: undefined,
  moderation: 'auto',
  output_compression: 100,
  output_format: 'png',
  quality: 'auto',
  safety_identifier: undefined,
  size: 'auto',
  style: undefined,
};

/** The fields of a request that a model which draws by a ratio leaves out; of a size it takes the nearest ratio. */
export function droppedForRatio(request: ImageRequest): readonly string[] {
  const given = new Map<string, unknown>(Object.entries(request));
  return Object.entries(THEIR_OWN).flatMap(([name, usual]) => {
    const value = given.get(name) ?? undefined;
    return value === undefined || value === usual ? [] : [name];
  });
}

/**
 * The aspect ratio that a request asks for, of a model that knows no sizes: a size becomes the nearest one. Undefined when it
 * asks for neither. @throws UpstreamError `rejected` for text that is no size
 */
export function aspectRatio({ aspect_ratio: ratio, size }: ImageRequest): string | undefined {
  if (typeof ratio === 'string') return ratio;
  return typeof size === 'string' && size !== 'auto' ? nearestRatio(size) : undefined;
}
