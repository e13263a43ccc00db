/** A server under test. */
export interface Target {
  readonly name: TargetName;
  readonly port: number;
  /** The serving process itself, whose CPU time is taken. */
  readonly pid: number;
}

export type TargetName = 'upstream' | 'bare proxy' | 'Koa proxy' | 'gateway';
