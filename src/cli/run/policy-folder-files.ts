import { existsSync } from 'node:fs';
import path from 'node:path';
import { counted } from '../../lib/counted.ts';
import { plainText } from '../../lib/text.ts';
import { FixtureSources, type Place } from '../../workbench/fixtures/fixture-source.ts';
import { placeText } from '../../workbench/fixtures/report-text.ts';
import { type ReadFolder, readPolicyFolder } from '../../workbench/folder/policy-folder.ts';
import { UsageError } from '../terminal/usage-error.ts';

/** What a policy folder states. @throws UsageError after a line for each fault */
export function folderAt(place: string): ReadFolder {
  if (!existsSync(place)) throw new UsageError(`There is no folder or file ${place}.`);
  const read = readPolicyFolder(path.resolve(place), new FixtureSources());
  if ('faults' in read) throw refusedFolder(read.faults);
  return read;
}

/** Prints a line for each fault of a folder, and makes the error that ends the command. */
export function refusedFolder(faults: readonly { readonly place: Place; readonly message: string }[]): UsageError {
  const cwd = process.cwd();
  for (const { place, message } of faults) process.stderr.write(`${placeText(place, cwd)}: ${plainText(message)}\n`);
  return new UsageError(`Nothing was done: ${counted(faults.length, 'fault')} in the policy folder.`);
}
