import type { Detail } from './draw-image.ts';

/** Models that echo. */
const ECHO_MODELS: readonly string[] = ['sandbox-free', 'sandbox-paid', 'sandbox-slow', 'sandbox-faulty'];

/** Models that draw, and how finely. */
const IMAGE_MODELS: ReadonlyMap<string, Detail> = new Map([
  ['sandbox-image-plus', 'plain'],
  ['sandbox-image-max', 'fine'],
]);

export const MODERATION_MODEL = 'sandbox-moderation';

/** How finely a model draws; undefined for one that does not. */
export const detailOf = (model: string): Detail | undefined => IMAGE_MODELS.get(model);

/** The models that draw complete chats too: they show the picture after the echo. */
export const completesChats = (model: string): boolean => ECHO_MODELS.includes(model) || IMAGE_MODELS.has(model);

export const ALL_MODELS: readonly string[] = [...ECHO_MODELS, ...IMAGE_MODELS.keys(), MODERATION_MODEL];
