const MAX_LENGTH = 2048;

/** A path of this listener. Browsers take `\` for `/`, so that `/\host` leads away as `//host` does. */
const LOCAL = /^\/(?:[!-.0-[\]-~][!-[\]-~]*)?$/;

/** The text when it leads nowhere but to this listener, else undefined. */
export const localPath = (text: string): string | undefined =>
  text.length <= MAX_LENGTH && LOCAL.test(text) ? text : undefined;
