import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { readLiveFolder } from '../../admin/folder/live-folder.ts';
import { sourceOf } from '../../admin/folder/plan-folder.ts';
import { counted, plainText } from '../../lib/text.ts';
import { placeText } from '../../workbench/fixtures/fixture-reports.ts';
import { FixtureSources, type Place } from '../../workbench/fixtures/fixture-source.ts';
import { folderFiles, policyFiles, type ReadFolder, readPolicyFolder } from '../../workbench/folder/policy-folder.ts';
import { print } from '../terminal/output.ts';
import { UsageError } from '../terminal/usage-faults.ts';
import { type Environment, inWorkspace } from '../workspace.ts';

export interface PolicyPullOptions {
  readonly org?: string;
  readonly source?: string;
  readonly force?: true;
}

/**
 * `portcullis policy pull`. Deletes no file.
 * @throws Error for a folder with files that differ, unless they are to be overwritten, or that the pull would not write
 */
export async function runPolicyPull(env: Environment, folder: string, options: PolicyPullOptions): Promise<void> {
  const there = existsSync(folder) ? policyFiles(folder) : [];
  const source = options.source ?? (there.length === 0 ? undefined : sourceOf(folderAt(folder).document));
  const live = await inWorkspace(env, 'read', options.org, ({ db, actor }) =>
    db.snapshot(() => readLiveFolder(db, actor, source ?? sourceOf({}))),
  );
  const files = new Map([...folderFiles(live)].map(([name, text]) => [path.join(folder, name), text]));
  const strange = there.filter((file) => !files.has(file));
  if (strange.length > 0) {
    throw new Error(
      `What is live has no place in these files: ${strange.join(', ')}. Remove them, or pull into a folder of its own.`,
    );
  }
  const differing = [...files].filter(([file, text]) => existsSync(file) && readFileSync(file, 'utf8') !== text);
  if (differing.length > 0 && !options.force) {
    throw new Error(
      `These files differ from what is live: ${differing.map(([file]) => file).join(', ')}. --force overwrites them.`,
    );
  }
  for (const [file, text] of files) {
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
  print(`Wrote ${counted(files.size, 'file')} to ${folder}.`);
}

/** Reads a policy folder. @throws UsageError after a line for each fault */
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
