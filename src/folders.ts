import { existsSync, lstatSync, mkdirSync, readlinkSync } from 'node:fs';
import { dirname } from 'node:path';

/** A link that leads nowhere is a disk that is not mounted, or a file that was lost: nothing may be begun in its place. @throws Error */
export function assertNoDanglingLink(path: string): void {
  if (existsSync(path) || lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() !== true) return;
  throw new Error(
    `${path} is a link to ${readlinkSync(path)}, which is not there: put back what it leads to, or remove the link.`,
  );
}

/**
 * Makes a folder and those above it that are missing. One by one: Node's own `recursive` never returns where the system lets nobody
 * make one, as under /proc.
 * @param mode of those that are made, less the umask; default: everyone's
 */
export function makeFolders(folder: string, mode?: number): void {
  if (existsSync(folder)) return;
  assertNoDanglingLink(folder);
  const parent = dirname(folder);
  // A drive that is not there is its own parent.
  if (parent !== folder) makeFolders(parent, mode);
  try {
    mkdirSync(folder, mode === undefined ? {} : { mode });
  } catch (error) {
    if (!existsSync(folder)) throw error; // Someone else may have made it meanwhile.
  }
}
