import type { Command } from 'commander';
import { createProgram } from '../../src/cli/program.ts';
import { code, lines, sections, table } from './markdown.ts';

/** What nearly every command has. */
const USUAL = new Set(['--help', '--json', '--org', '--wide']);

/** The commands that can be run: below a group, its own. */
const runnable = (command: Command): readonly Command[] =>
  command.commands.length === 0 ? [command] : command.commands.flatMap(runnable);

function nameOf(command: Command): string {
  const names: string[] = [];
  for (let at: Command | null = command; at !== null; at = at.parent) names.unshift(at.name());
  const values = command.registeredArguments.map((argument) => {
    const name = `${argument.name()}${argument.variadic ? '...' : ''}`;
    return argument.required ? `<${name}>` : `[${name}]`;
  });
  return [...names, ...values].join(' ');
}

function row(command: Command): readonly string[] {
  const options = command.options.filter(({ long, hidden }) => !hidden && !USUAL.has(long ?? ''));
  return [code(nameOf(command)), lines(command.description(), options.map(({ flags }) => code(flags)).join(', '))];
}

/** A table for each group of `portcullis --help`. */
export function commandTables(): string {
  const groups = Map.groupBy(createProgram({}).commands, (command) => command.helpGroup().replace(/:$/, ''));
  return sections(
    [...groups].map(([title, commands]) => [
      title,
      table(['Command', 'What it does'], commands.flatMap(runnable).map(row)),
    ]),
  );
}
