import os from 'node:os';

/** For a thread beside the serving one: where both want the same core, calls come first. Only Linux has a priority for each thread; elsewhere it is the process's. */
export function yieldToOthers(): void {
  if (process.platform === 'linux') os.setPriority(os.constants.priority.PRIORITY_BELOW_NORMAL);
}
