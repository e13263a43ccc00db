import type { Command } from 'commander';

export interface CommonOptions {
  readonly org?: string;
  readonly json?: true;
  readonly wide?: true;
}

export const ORGANIZATION = 'the organization, where there are several';

/** The options of every command that works on one organization. */
export const common = (command: Command): Command =>
  command.option('--org <organization>', ORGANIZATION).option('--json', 'print JSON, as the master API answers it');

export const wide = (command: Command): Command => command.option('--wide', 'show all columns, and shorten nothing');

/** The options of a command that prints a list. */
export const listing = (command: Command): Command => wide(common(command));

/** A field that a command line sets to null by the word `none`. (Commander turns the null of a parser into an empty text.) */
export const orNone = <T>(value: T | 'none'): T | null => (value === 'none' ? null : value);

/** The fields that were named: those that are undefined are left out. */
export const named = (fields: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
