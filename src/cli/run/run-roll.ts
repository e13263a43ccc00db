import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs';
import { rollKey } from '../../admin/keys/keys.ts';
import type { RollEnds } from '../../admin/keys/oauth-grants.ts';
import { type TtlUnit, ttlEnd } from '../../domain/time.ts';
import { plainText } from '../../lib/text.ts';
import type { CommonOptions } from '../terminal/common-options.ts';
import type { Duration } from '../terminal/durations.ts';
import { free, growingTable, print } from '../terminal/output.ts';
import { progressBar } from '../terminal/progress.ts';
import { everyKey, memberId, projectId } from './references.ts';
import { type Environment, inWorkspace, type Workspace } from './workspace.ts';

export interface RollOptions extends CommonOptions {
  readonly overlap?: Duration<TtlUnit>;
  readonly endApplications: RollEnds;
  readonly all?: true;
  readonly owner?: string;
  readonly project?: string;
  readonly output?: string;
}

/** A key and its new token. */
interface Rolled {
  readonly id: string;
  readonly description: string | null;
  readonly owner: string | null;
  readonly token: string;
}

/** Keys in one transaction, so that a server's calls wait for none of them long. */
const BATCH = 20;

/** Until when the old token is accepted too, in epoch ms; null: no longer. */
export const oldEnd = (length: Duration<TtlUnit> | undefined, now: number): number | null =>
  length === undefined ? null : ttlEnd(now, length.value, length.unit, '/overlap');

/** The keys that the options mean, oldest first. */
function meantKeys(workspace: Workspace, { owner, project }: RollOptions): string[] {
  const ownerId = owner === undefined ? undefined : memberId(workspace, owner);
  const keys = everyKey(workspace, project === undefined ? undefined : projectId(workspace, project));
  return keys
    .filter(({ createdBy }) => ownerId === undefined || createdBy === ownerId)
    .map(({ id }) => id)
    .toReversed();
}

function roll({ db, actor, now, pepper }: Workspace, id: string, options: RollOptions): Rolled {
  const { overlap, endApplications: ends } = options;
  const { key } = rollKey(db, actor, id, { now, pepper: pepper(), oldEndsAt: oldEnd(overlap, now), ends });
  const { token = '', description, createdByEmail } = key;
  return { id, description, owner: createdByEmail, token };
}

const lineOf = ({ id, description, owner, token }: Rolled): string =>
  [id, description ?? '-', owner ?? 'has left', token].map(plainText).join('\t');

const textOf = (rolled: readonly Rolled[], { json }: RollOptions): string =>
  rolled.map((each) => `${json ? JSON.stringify(each) : lineOf(each)}\n`).join('');

/**
 * Rolls many keys. The new tokens of a batch are in the file before it is committed, or are printed as soon as it is, so that no token
 * is lost when a later batch fails. In JSON each key is a line.
 * @throws Error where the file exists already
 */
export async function rollMany(env: Environment, options: RollOptions): Promise<void> {
  const { org, output, json } = options;
  const ids = await inWorkspace(env, 'read', org, (workspace) => meantKeys(workspace, options));
  const file = output === undefined ? undefined : openSync(output, 'wx', 0o600);
  const bar = progressBar('Rolling keys');
  const table = growingTable(['ID', free('DESCRIPTION'), free('OWNER'), 'TOKEN']);
  try {
    for (let done = 0; done < ids.length; done += BATCH) {
      if (ids.length > BATCH) bar.show(done, ids.length);
      const rolled = await inWorkspace(env, 'write', org, (workspace) => {
        const batch = ids.slice(done, done + BATCH).map((id) => roll(workspace, id, options));
        if (file !== undefined) {
          writeSync(file, textOf(batch, options));
          fsyncSync(file);
        }
        return batch;
      });
      if (file !== undefined) continue;
      bar.end();
      if (json) process.stdout.write(textOf(rolled, options));
      else
        table(
          rolled.map(({ id, description, owner, token }) =>
            [id, description ?? '-', owner ?? 'has left', token].map((text) => ({ text })),
          ),
        );
    }
  } finally {
    bar.end();
    if (file !== undefined) closeSync(file);
  }
  if (json) return;
  if (ids.length === 0) print('There are no such keys.');
  else if (output !== undefined)
    print(`Rolled ${ids.length} ${ids.length === 1 ? 'key' : 'keys'}; the new tokens are in ${output}.`);
}
