import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { Budget } from './budget.ts';
import type { CounterName } from './counters.ts';
import { type CostBySteps, FIGURES, type Figure, MEANINGS, total } from './figures.ts';
import { SCENARIOS } from './scenarios.ts';
import { STEPS } from './steps.ts';

const PAGE = path.join(import.meta.dirname, '..', 'README.md');
const BEGIN = '<!-- cost: written by `npm run bench -- --only cost --update` -->';
const END = '<!-- end of cost -->';

const text = (value: number | undefined, figure: Figure): string => {
  if (value === undefined) return '';
  const { decimals } = MEANINGS[figure];
  // A zero says nothing, and few figures have decimals that do.
  return value.toLocaleString('en-US', { maximumFractionDigits: decimals }).replace(/^-?0$/, '');
};

/** The first column, and then one for each figure that anyone has. */
function rowsOf(head: string, lines: readonly (readonly [name: string, (figure: Figure) => number | undefined])[]) {
  const figures = FIGURES.filter((figure) => lines.some(([, of]) => text(of(figure), figure) !== ''));
  const rows = lines.map(([name, of]) => [name, ...figures.map((figure) => text(of(figure), figure))]);
  const told = rows.filter(([, ...cells]) => cells.some((cell) => cell !== ''));
  return [[head, ...figures.map((figure) => MEANINGS[figure].title)], ...told];
}

/** Rows of what one exchange costs by step, its sum last. */
export const stepRows = (name: string, cost: CostBySteps): string[][] =>
  rowsOf(name, [
    ...STEPS.map((step) => [step, (figure: Figure) => cost[step]?.[figure]] as const),
    ['**all**', (figure: Figure) => total(cost, figure)],
  ]);

const markdown = ([head = [], ...rows]: readonly (readonly string[])[]): string => {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map((_, column) => (column === 0 ? '---' : '--:'))), ...rows.map(line)].join('\n');
};

const COUNTER_NAMES: Readonly<Record<CounterName, string>> = { perf: '`perf`', qemu: 'QEMU' };

/** Scenarios and the instructions of each, in thousands. */
export const instructionRows = ({ counter, instructions }: Budget): string[][] =>
  counter === null || instructions === null
    ? []
    : [
        ['instructions, thousands', ...SCENARIOS],
        [`by ${COUNTER_NAMES[counter]}`, ...SCENARIOS.map((scenario) => instructions[scenario].toFixed(0))],
      ];

/** The part of the page that follows from the budget. */
function section(budget: Budget): string {
  const rows = [instructionRows(budget), ...SCENARIOS.map((scenario) => stepRows(scenario, budget.calls[scenario]))];
  const tables = rows.filter(({ length }) => length > 0).map(markdown);
  return `${BEGIN}\n${tables.join('\n\n')}\n${END}`;
}

function pageWith(budget: Budget): { readonly old: string; readonly new: string } {
  const old = readFileSync(PAGE, 'utf8');
  const [begin, end] = [old.indexOf(BEGIN), old.indexOf(END)];
  if (begin === -1 || end === -1) throw new Error(`${PAGE} has no place for the cost of a call`);
  return { old, new: `${old.slice(0, begin)}${section(budget)}${old.slice(end + END.length)}` };
}

/** Whether the page shows this budget. */
export function isOnPage(budget: Budget): boolean {
  const page = pageWith(budget);
  return page.old === page.new;
}

export const writeOnPage = (budget: Budget): void => writeFileSync(PAGE, pageWith(budget).new);
