import { cpSync, existsSync } from 'node:fs';
import path from 'node:path';
import { cliCommand } from '../../runtime.js';
import { type Gateway, startGateway } from '../gateway.ts';
import type { Target } from '../target.ts';

/**
 * A gateway under an emulator. It needs what Node has compiled before to start in time, and gets a copy: what it compiles itself is
 * of no use to others.
 * @param under the emulator's command, which runs Node
 */
export function startEmulatedGateway(folder: string, upstream: Target, under: readonly string[]): Promise<Gateway> {
  const compiled = path.join(folder, 'compiled');
  const { NODE_COMPILE_CACHE: cache } = cliCommand.env;
  if (cache !== undefined && existsSync(cache)) cpSync(cache, compiled, { recursive: true });
  const variables = { NODE_COMPILE_CACHE: compiled };
  return startGateway(folder, upstream, { variables, runner: { under, nodeArgs: [], hasChannel: false } });
}
