import { statSync } from 'node:fs';
import path from 'node:path';
import { UsageError } from './usage-error.ts';

/** The absolute path of a file that the command line names. @throws UsageError where there is none */
export function givenFile(name: string): string {
  if (!statSync(name, { throwIfNoEntry: false })?.isFile()) throw new UsageError(`There is no file ${name}.`);
  return path.resolve(name);
}

/** The same of a folder. */
export function givenFolder(name: string): string {
  if (!statSync(name, { throwIfNoEntry: false })?.isDirectory()) throw new UsageError(`There is no folder ${name}.`);
  return path.resolve(name);
}
