import { STEPS, type Step } from './steps.ts';

/** What is counted, in the order of the tables. */
export const FIGURES = [
  'cpuUs',
  'bytes',
  'promises',
  'timers',
  'statements',
  'values',
  'rowsRead',
  'rowsWritten',
  'commits',
  'pages',
  'syscalls',
] as const;

export type Figure = (typeof FIGURES)[number];

interface Meaning {
  /** Head of its column. */
  readonly title: string;
  readonly decimals: number;
  /** Growth up to so much is none: what timers and the event loop do between calls shows in each figure. Absent: never enforced. */
  readonly slack?: number;
}

export const MEANINGS: Readonly<Record<Figure, Meaning>> = {
  cpuUs: { title: 'CPU µs', decimals: 0 },
  bytes: { title: 'bytes', decimals: 0, slack: 800 },
  promises: { title: 'promises', decimals: 2, slack: 0.4 },
  timers: { title: 'timers', decimals: 2, slack: 0.4 },
  statements: { title: 'statements', decimals: 2, slack: 0.4 },
  values: { title: 'values', decimals: 2, slack: 0.4 },
  rowsRead: { title: 'rows read', decimals: 2, slack: 0.4 },
  rowsWritten: { title: 'rows written', decimals: 2, slack: 0.4 },
  commits: { title: 'commits', decimals: 2, slack: 0.1 },
  pages: { title: 'pages', decimals: 2, slack: 0.5 },
  syscalls: { title: 'syscalls', decimals: 2, slack: 0.4 },
};

export type StepFigures = Partial<Record<Figure, number>>;

/** Figures by step, of one call or of many. */
export type CostBySteps = Partial<Record<Step, StepFigures>>;

/** Adds to a figure of a step. */
export function add(cost: CostBySteps, step: Step, figure: Figure, amount: number): void {
  const figures = cost[step] ?? {};
  figures[figure] = (figures[figure] ?? 0) + amount;
  cost[step] = figures;
}

/** Each figure of each step; those that nobody counted are left out. */
export function eachFigure(cost: CostBySteps, tell: (step: Step, figure: Figure, amount: number) => void): void {
  for (const step of STEPS) {
    for (const figure of FIGURES) {
      const amount = cost[step]?.[figure];
      if (amount !== undefined) tell(step, figure, amount);
    }
  }
}

/** `scale` times each figure. */
export function scaled(cost: CostBySteps, scale: number): CostBySteps {
  const result: CostBySteps = {};
  eachFigure(cost, (step, figure, amount) => add(result, step, figure, amount * scale));
  return result;
}

/** The sum, figure by figure. */
export function sum(...costs: readonly CostBySteps[]): CostBySteps {
  const result: CostBySteps = {};
  for (const cost of costs) eachFigure(cost, (step, figure, amount) => add(result, step, figure, amount));
  return result;
}

/** Of each figure the smaller one. */
export function lesser(one: CostBySteps, other: CostBySteps): CostBySteps {
  const result: CostBySteps = {};
  eachFigure(one, (step, figure, amount) => add(result, step, figure, Math.min(amount, other[step]?.[figure] ?? 0)));
  return result;
}

/** A figure over all steps; undefined where nobody counted it. */
export function total(cost: CostBySteps, wanted: Figure): number | undefined {
  let result: number | undefined;
  eachFigure(cost, (_, figure, amount) => {
    if (figure === wanted) result = (result ?? 0) + amount;
  });
  return result;
}
