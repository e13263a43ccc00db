import { readFileSync } from 'node:fs';
import path from 'node:path';
import { POLICY_DIRECTORY } from '../../src/policy/bundle.ts';
import type { Mutant } from './mutants.ts';

/** What a row of policy/MUTANTS.md and a mutant have in common; line numbers move. A `*` in the row's file is any part of a path. */
type Survivor = Pick<Mutant, 'file' | 'before' | 'after'>;

const explains = (row: Survivor, { file, before, after }: Survivor): boolean =>
  path.posix.matchesGlob(file, row.file) && row.before === before && row.after === after;

/** The rows of the table: file, line and mutant as code, and why. @throws Error for a row without a reason */
export function explainedSurvivors(): Survivor[] {
  const text = readFileSync(path.join(POLICY_DIRECTORY, 'MUTANTS.md'), 'utf8');
  const rows = text.split('\n').filter((line) => line.startsWith('| `'));
  return rows.map((row) => {
    const cells = row.split(/(?<!\\)\|/).map((cell) => cell.trim());
    const [, file = '', before = '', after = '', reason = ''] = cells.map((cell) => cell.replaceAll('\\|', '|'));
    if (reason === '') throw new Error(`policy/MUTANTS.md does not say why: ${row}`);
    return { file: code(file), before: code(before), after: code(after) };
  });
}

const code = (cell: string): string => cell.replace(/^`(.*)`$/, '$1');

/** Survivors that policy/MUTANTS.md does not explain, and explanations that none of these survivors needs. */
export function compareWithExplained(survivors: readonly Mutant[]): { unexplained: Mutant[]; stale: Survivor[] } {
  const rows = explainedSurvivors();
  return {
    unexplained: survivors.filter((mutant) => !rows.some((row) => explains(row, mutant))),
    stale: rows.filter((row) => !survivors.some((mutant) => explains(row, mutant))),
  };
}
