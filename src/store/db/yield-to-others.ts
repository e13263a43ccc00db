import os from 'node:os';

const BELOW_NORMAL = os.constants.priority.PRIORITY_BELOW_NORMAL;

/**
 * For threads other than the serving one: where both want the same core, calls come first. Only Linux has a priority for each thread;
 * elsewhere it is the process's. A process that was started with a lower one keeps it: to raise it is not allowed.
 */
export function yieldToOthers(): void {
  if (process.platform === 'linux' && os.getPriority() < BELOW_NORMAL) os.setPriority(BELOW_NORMAL);
}
