// How the fake upstreams fail, by name.
import type { Fault } from './exchange.ts';
import { HONEST } from './honest-faults.ts';
import { LARGE } from './large-faults.ts';
import { LYING } from './lying-faults.ts';

export const FAULTS: Readonly<Record<string, Fault>> = { ...HONEST, ...LYING, ...LARGE };
