import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { DAY } from '../../domain/time.ts';
import { counted } from '../../lib/text.ts';
import { createPdp } from '../../policy/pdp.ts';
import { draftText } from '../../workbench/analysis/drafts.ts';
import {
  findTightenSubject,
  type ReachUse,
  type TightenSubject,
  type TighterRules,
  tighten,
} from '../../workbench/analysis/tighten.ts';
import { JUDGE_ENGINE } from '../../workbench/world/judges.ts';
import { readWorld } from '../../workbench/world/world.ts';
import { checkWritable } from '../terminal/arguments.ts';
import { print, warn, write } from '../terminal/output.ts';
import { type Environment, inWorkspace, type Workspace } from '../workspace.ts';
import { policyOf } from './policy-world.ts';

export interface TightenOptions {
  readonly days: number;
  readonly addresses?: true;
  readonly output?: string;
  readonly org?: string;
}

/** `portcullis policy tighten`. @throws Error where no call was seen, or the draft would deny one */
export async function runTighten(env: Environment, reference: string, options: TightenOptions): Promise<void> {
  if (options.output !== undefined) checkWritable(options.output);
  const { subject, tightened } = await inWorkspace(env, 'read', options.org, (workspace) =>
    tightenIn(env, workspace, reference, options),
  );
  const { calls, since, denied, draft, notes, lost } = tightened;
  if (denied.calls > 0) {
    warn(
      `note: ${counted(denied.calls, 'call')} left out, which the current rules no longer permit: ${decisionsOf(denied)}.`,
    );
  }
  if (since === null) {
    throw new Error(
      `In the last ${counted(options.days, 'day')} no call of ${subject.name} was served: there is nothing to propose.`,
    );
  }
  if (lost.calls > 0) {
    throw new Error(`The draft would deny ${counted(lost.calls, 'call')}: ${decisionsOf(lost)}.`);
  }
  for (const line of summary(tightened)) warn(line);
  for (const note of notes) warn(`note: ${note}`);
  if (draft.length === 0) {
    warn('The current rules are already as tight: nothing to propose.');
    return;
  }
  const text = draftText(draft, `From ${counted(calls, 'call')} of ${subject.name} since ${since}.`);
  if (options.output === undefined) await write(text);
  else {
    writeFileSync(path.resolve(options.output), text);
    print(`Wrote ${counted(draft.length, 'change')} of rules to ${options.output}.`);
  }
}

function tightenIn(
  env: Environment,
  { db, now, installation, actor }: Workspace,
  reference: string,
  { days, addresses }: TightenOptions,
): { readonly subject: TightenSubject; readonly tightened: TighterRules } {
  const world = readWorld(db, installation(), actor.organizationId);
  const subject = findTightenSubject(world, reference);
  const pdp = createPdp(policyOf(env), JUDGE_ENGINE);
  try {
    const from = Math.max(0, now - days * DAY);
    return { subject, tightened: tighten(db, pdp, world, subject, { from, to: now, addresses: addresses === true }) };
  } finally {
    pdp.close();
  }
}

/** The decisions that are named, and how many calls there are besides. */
function decisionsOf({ calls, decisionIds }: TighterRules['denied']): string {
  const more = calls - decisionIds.length;
  return `${decisionIds.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

function summary({ calls, since, models, providers }: TighterRules): string[] {
  const share = ({ used, reachable }: ReachUse, what: string): string =>
    `${counted(used, what)} used, ${reachable} reachable`;
  return [
    `${counted(calls, 'call')} since ${since}: ${share(models, 'model')}; ${share(providers, 'provider')}.`,
    `Verified by replay: with the draft, every one of these calls is still permitted at the provider that served it.`,
  ];
}
