import type { Command } from 'commander';

export interface CommonOptions {
  readonly org?: string;
  readonly json?: true;
}

/** The options of every command that works on one organization. */
export const common = (command: Command): Command =>
  command
    .option('--org <id>', 'the organization, where there are several')
    .option('--json', 'print JSON, as the master API answers it');

/** A field that a command line may leave out, or set to null by the word `none`. */
export const orNone = (text: string | undefined): string | null | undefined => (text === 'none' ? null : text);

/** The fields that were named: those that are undefined are left out. */
export const named = (fields: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
