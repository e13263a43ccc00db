import type { CostBySteps } from './figures.ts';

/** Something that is counted in the gateway's process for a while; it slows the calls, so each is on alone. */
export interface Pass {
  start(): Promise<void>;
  /** All that was counted since the start. */
  stop(): Promise<PassResult>;
}

export interface PassResult {
  readonly cost: CostBySteps;
  /** Functions that took samples themselves, most first. */
  readonly functions?: readonly (readonly [name: string, samples: number])[];
}
