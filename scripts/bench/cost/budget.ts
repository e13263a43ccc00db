import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { add, type CostBySteps, eachFigure, MEANINGS } from './figures.ts';
import type { CostFigures } from './measure-cost.ts';
import { SCENARIOS, type Scenario } from './scenarios.ts';

/** What calls may cost: the figures of the commit that last changed them. */
export type Budget = Omit<CostFigures, 'functions'>;

const FILE = path.join(import.meta.dirname, 'budget.json');
/** How much of its budget a figure may take. */
const MOST = 1.15;

const isBudget = (value: unknown): value is Budget =>
  typeof value === 'object' && value !== null && 'calls' in value && 'counter' in value && 'node' in value;

export function readBudget(): Budget {
  const budget: unknown = JSON.parse(readFileSync(FILE, 'utf8'));
  if (!isBudget(budget)) throw new Error(`${FILE} is no budget: write it again with --update`);
  return budget;
}

/** Figures with as many decimals as the tables show; those that come to nothing are left out. */
function rounded(cost: CostBySteps): CostBySteps {
  const result: CostBySteps = {};
  eachFigure(cost, (step, figure, amount) => {
    const value = Number(amount.toFixed(MEANINGS[figure].decimals));
    if (value > 0) add(result, step, figure, value);
  });
  return result;
}

export function writeBudget({ node, counter, instructions, calls }: CostFigures): Budget {
  const budget: Budget = {
    node,
    counter,
    instructions,
    calls: {
      'plain call': rounded(calls['plain call']),
      'capped key': rounded(calls['capped key']),
      'cache hit': rounded(calls['cache hit']),
      denial: rounded(calls.denial),
      'stream chunk': rounded(calls['stream chunk']),
    },
  };
  writeFileSync(FILE, `${JSON.stringify(budget, null, 2)}\n`);
  return budget;
}

/** A figure over its budget. */
export interface Excess {
  readonly scenario: Scenario;
  readonly what: string;
  readonly figure: number;
  readonly budget: number;
}

const isOver = (figure: number, budget: number, slack: number): boolean =>
  figure > budget * MOST && figure - budget > slack;

/**
 * What grew by more than 15 %. Figures of a step count where they depend on no machine, but for the bytes of the event loop, which vary
 * between runs; instructions, as a whole, where the budget's were counted in the same way; CPU time never.
 */
export function excesses(budget: Budget, measured: Budget): Excess[] {
  const found: Excess[] = [];
  for (const scenario of SCENARIOS) {
    const [allowed, cost] = [budget.calls[scenario], measured.calls[scenario]];
    eachFigure(cost, (step, figure, amount) => {
      const { title, slack } = MEANINGS[figure];
      const most = allowed[step]?.[figure] ?? 0;
      if (slack === undefined || (figure === 'bytes' && step === 'elsewhere')) return;
      if (!isOver(amount, most, slack)) return;
      found.push({ scenario, what: `${step}: ${title}`, figure: amount, budget: most });
    });
    const [most, count] = [budget.instructions?.[scenario], measured.instructions?.[scenario]];
    if (budget.counter !== measured.counter || most === undefined || count === undefined) continue;
    if (isOver(count, most, 0)) found.push({ scenario, what: 'instructions, thousands', figure: count, budget: most });
  }
  return found;
}
