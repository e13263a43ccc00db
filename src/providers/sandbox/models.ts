import type { Detail } from './draw-image.ts';

/** Models that echo. */
const ECHO_MODELS: readonly string[] = ['sandbox-free', 'sandbox-paid', 'sandbox-slow', 'sandbox-faulty'];

/** Models that draw, and how finely. */
const IMAGE_MODELS: ReadonlyMap<string, Detail> = new Map([
  ['sandbox-image-plus', 'plain'],
  ['sandbox-image-max', 'fine'],
]);

export const MODERATION_MODEL = 'sandbox-moderation';

/** Detail in which a model draws; undefined for one that does not. */
export const detailOf = (model: string): Detail | undefined => IMAGE_MODELS.get(model);

/** The models that draw complete chats too: they show the picture after the echo. */
export const completesChats = (model: string): boolean => ECHO_MODELS.includes(model) || IMAGE_MODELS.has(model);

export const ALL_MODELS: readonly string[] = [...ECHO_MODELS, ...IMAGE_MODELS.keys(), MODERATION_MODEL];

/** Answers are the same whenever they are asked for, so they bear the birthday of the sandbox, in seconds since 1970. */
export const CREATED = Date.UTC(2026, 10, 21) / 1000;

/** A token is four characters; what is left over at the end of a text is one too. */
export const TOKEN_LENGTH = 4;

export const textTokens = (text: string): number => Math.ceil(text.length / TOKEN_LENGTH);
