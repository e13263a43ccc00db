/** A server under test. */
export interface Target {
  readonly name: TargetName;
  readonly port: number;
  /** The serving process itself, whose CPU time is taken. */
  readonly pid: number;
  /** Whether it passes streams on. */
  readonly streams: boolean;
  /** Whether all requests of a measurement are the same, so that the gateway answers them from its cache. */
  readonly equalBodies: boolean;
  /** A key of its own; absent: the plan's. */
  readonly apiKey?: string;
}

export type TargetName =
  | 'upstream'
  | 'bare proxy'
  | 'Koa proxy'
  | 'gateway'
  | 'its cache hits'
  | 'a capped key'
  | 'gateway before'
  | 'a capped key before';
