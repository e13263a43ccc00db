import type { Progress } from '../progress.ts';
import { cell, table } from '../table.ts';
import { excesses, readBudget, writeBudget } from './budget.ts';
import { instructionRows, isOnPage, stepRows, writeOnPage } from './cost-tables.ts';
import type { CounterName } from './counters.ts';
import { type CostFigures, measureCost } from './measure-cost.ts';
import { SCENARIOS } from './scenarios.ts';

/** Whether to hold the figures to the budget, to make them the budget, or to show them. */
export type BudgetUse = 'check' | 'update' | 'show';

const TOP = 15;
const NO_COUNTER =
  'This machine offers no counter of instructions (`--counter qemu` emulates one): CPU time stands for them.';

function show(figures: CostFigures): void {
  const { calls, counter, functions } = figures;
  for (const scenario of SCENARIOS) console.log(`\n${table(stepRows(scenario, calls[scenario]))}`);
  const rows = functions.slice(0, TOP).map(([name, us]) => [name, cell(us, 1)]);
  if (rows.length > 0) console.log(`\n${table([['functions of a plain call, by themselves', 'CPU µs'], ...rows])}`);
  console.log(`\n${counter === null ? NO_COUNTER : table(instructionRows(figures))}`);
}

/** True when the figures keep to the budget and the page shows it; says what does not. */
function isKept(figures: CostFigures): boolean {
  const budget = readBudget();
  const found = excesses(budget, figures);
  const rows = found.map((each) => [`${each.scenario}, ${each.what}`, cell(each.figure, 2), cell(each.budget, 2)]);
  if (rows.length > 0) {
    console.log(`\n${table([['over budget by more than 15 %', 'now', 'budget'], ...rows])}\n`);
    console.log('Make it cheaper, or say in the commit why it must cost more and write the budget again:');
    console.log('npm run bench -- --only cost --update');
  }
  const onPage = isOnPage(budget);
  if (!onPage) console.log('\nscripts/bench/README.md does not show the budget: npm run bench -- --only cost --update');
  if (rows.length === 0 && onPage) console.log('\nEvery step keeps its budget.');
  return rows.length === 0 && onPage;
}

/** Measures what a call costs by step; sets the exit code when a budget that is to be kept is not. */
export async function benchCost(
  folder: string,
  use: BudgetUse,
  counter: CounterName | undefined,
  progress: Progress,
): Promise<CostFigures> {
  const figures = await measureCost({ folder, counter, onlyBounded: use === 'check', progress });
  progress.end();
  show(figures);
  if (use === 'update') writeOnPage(writeBudget(figures));
  if (use === 'check' && !isKept(figures)) process.exitCode = 1;
  return figures;
}
