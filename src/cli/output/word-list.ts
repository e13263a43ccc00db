import { InvalidArgumentError } from 'commander';

/** Parses a comma list of known words. @returns a parser for commander, which ends with exit code 2 */
export const wordList =
  <Word extends string>(words: readonly Word[]) =>
  (text: string): Word[] =>
    text.split(',').map((item) => {
      const known = words.find((word) => word === item.trim());
      if (known === undefined) throw new InvalidArgumentError(`It must be a comma list of ${words.join(', ')}.`);
      return known;
    });
