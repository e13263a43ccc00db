import { createHook } from 'node:async_hooks';
import { currentStep } from './current-step.ts';
import { add, type CostBySteps, type Figure } from './figures.ts';
import type { Pass } from './pass.ts';

const FIGURE_OF = new Map<string, Figure>([
  ['PROMISE', 'promises'],
  ['Timeout', 'timers'],
  ['Immediate', 'timers'],
]);

let cost: CostBySteps = {};

const hook = createHook({
  init(_, type) {
    const figure = FIGURE_OF.get(type);
    if (figure !== undefined) add(cost, currentStep(), figure, 1);
  },
});

/** Promises, one more for each `await`, and timers, immediates included. */
export const asyncPass: Pass = {
  async start() {
    cost = {};
    hook.enable();
  },
  async stop() {
    hook.disable();
    return { cost };
  },
};
