import type { RuleWidening } from '../../generated/types.ts';
import { widening } from '../../workbench/analysis/widening.ts';
import { partsOf } from '../../workbench/world/candidates.ts';
import { readWorld } from '../../workbench/world/world.ts';
import { withJudges } from './policy-world.ts';
import { type Environment, inWorkspace } from './workspace.ts';

/** What a change newly permits, judged in this process. @throws PolicyFailure */
export async function judgeWidening(
  env: Environment,
  org: string | undefined,
  change: Parameters<typeof widening>[2],
): Promise<RuleWidening> {
  const world = await inWorkspace(env, 'read', org, ({ db, actor, installation }) =>
    readWorld(db, installation(), actor.organizationId),
  );
  const [part] = partsOf([world]);
  return withJudges(env, part?.mappings ?? [], (judges, progress) => widening(judges, world, change, progress));
}
