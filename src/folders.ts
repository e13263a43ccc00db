import { existsSync, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Makes a folder and those above it that are missing. One by one: Node's own `recursive` never returns where the system lets nobody
 * make one, as under /proc.
 * @param mode of those that are made, less the umask; default: everyone's
 */
export function makeFolders(folder: string, mode?: number): void {
  if (existsSync(folder)) return;
  const parent = dirname(folder);
  // A drive that is not there is its own parent.
  if (parent !== folder) makeFolders(parent, mode);
  try {
    mkdirSync(folder, mode === undefined ? {} : { mode });
  } catch (error) {
    if (!existsSync(folder)) throw error; // Someone else may have made it meanwhile.
  }
}
