import type { RuleWrite } from '../../admin/rules/iam-rules.ts';
import type { Workspace } from './workspace.ts';

/** What a write of rules needs apart from the database. */
export const ruleWriteOf = ({ now, catalog, config }: Workspace): RuleWrite => ({
  now,
  catalog: catalog(),
  trustedProxies: config.trustedProxies ?? undefined,
});
