import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { readLiveFolder } from '../../admin/folder/live-folder.ts';
import { sourceOf } from '../../admin/folder/plan-folder.ts';
import { counted } from '../../lib/counted.ts';
import { folderFiles } from '../../workbench/folder/folder-files.ts';
import { policyFiles } from '../../workbench/folder/policy-folder.ts';
import { print } from '../terminal/output.ts';
import { folderAt } from './policy-folder-files.ts';
import { type Environment, inWorkspace } from './workspace.ts';

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
