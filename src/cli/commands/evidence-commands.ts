import { type Command, InvalidArgumentError, Option } from 'commander';
import { listEvidence, readEvidenceRequest } from '../../admin/log/rule-evidence.ts';
import type { IamRule, RuleEvidence } from '../../generated/types.ts';
import type { PageRequest } from '../../store/db/page.ts';
import { findNames } from '../../store/tenants/names.ts';
import { showEvidence, showRuleChange } from '../output/rule-output.ts';
import { ruleOwner } from '../run/references.ts';
import { runRuleUpdate } from '../run/run-rule-writes.ts';
import { type Environment, inWorkspace } from '../run/workspace.ts';
import { type CommonOptions, common } from '../terminal/common-options.ts';
import { confirm } from '../terminal/confirm.ts';
import { print, printJson } from '../terminal/output.ts';

type EvidenceOptions = CommonOptions & PageRequest;
type PromoteOptions = CommonOptions & { readonly yes?: true; readonly failOnNewAccess?: true };

function parseLimit(text: string): number {
  const limit = /^[1-9][0-9]{0,2}$/.test(text) ? Number(text) : 201;
  if (limit > 200) throw new InvalidArgumentError('It must be a whole number from 1 to 200.');
  return limit;
}

const EVIDENCE_HELP = `
A decision counts for the rule when, with all rules in mode report in force, a candidate that was permitted would be denied and the
rule is among those that deny it, or a candidate that was denied would be permitted and the rule allows it. WOULD BE is the outcome of
the call then. What the rule reported before its type or value was changed is left out.`;

const PROMOTE_HELP = `
It is shown what the rule would have changed; then, on a terminal, you are asked. Elsewhere nothing is changed without --yes.`;

/** Decisions that a promotion shows. */
const EXAMPLES = 10;

/** `portcullis rules evidence` and `rules promote`. */
export function evidenceCommands(rules: Command, env: Environment): void {
  common(rules.command('evidence').argument('<ruleId>'))
    .description('Show the decisions that a rule in mode report would have changed, newest first.')
    .addOption(new Option('--limit <n>', 'how many at most, 1 to 200').argParser(parseLimit).default(50))
    .option('--cursor <cursor>', 'where the page before ended')
    .addHelpText('after', EVIDENCE_HELP)
    .action(async (id: string, options: EvidenceOptions) => {
      const { evidence, names } = await readEvidence(env, id, options.org, options);
      showEvidence(evidence, names, options);
    });

  common(rules.command('promote').argument('<ruleId>'))
    .description('Enforce a rule that is in mode report, after a look at what it would have changed.')
    .option('--yes', 'do not ask')
    .option('--fail-on-new-access', 'refuse it when the rule permits what was not permitted')
    .addHelpText('after', PROMOTE_HELP)
    .action((id: string, options: PromoteOptions) => promote(env, id, options));
}

interface Evidence {
  readonly evidence: RuleEvidence;
  /** Of keys, by their ids. */
  readonly names: ReadonlyMap<string, string>;
}

const readEvidence = (env: Environment, id: string, org: string | undefined, page: PageRequest): Promise<Evidence> =>
  inWorkspace(env, 'read', org, (workspace) => {
    const { db, actor } = workspace;
    const evidence = listEvidence(db, readEvidenceRequest(db, actor, ruleOwner(workspace, id), id, page));
    const keys = evidence.decisions.map(({ keyId }) => keyId);
    return { evidence, names: findNames(db, actor.organizationId, keys) };
  });

async function promote(env: Environment, id: string, options: PromoteOptions): Promise<void> {
  const { json, org, yes, failOnNewAccess } = options;
  const { evidence, names } = await readEvidence(env, id, org, { limit: EXAMPLES });
  if (!json) showEvidence(evidence, names, options);
  if (!evidence.rule.reportOnly) throw new Error('Only an active rule in mode report can be promoted.');
  if (!yes && !(await confirm('\nEnforce it?')))
    throw new Error('Nothing was changed. To enforce the rule, pass --yes.');
  const bodyFor = ({ updatedAt }: IamRule): object => {
    if (updatedAt !== evidence.rule.updatedAt) throw new Error('Nothing was changed: the rule has changed meanwhile.');
    return { mode: 'enforce', ...(failOnNewAccess ? { failOnNewAccess } : {}) };
  };
  const change = await runRuleUpdate(env, org, id, bodyFor);
  if (json) {
    printJson({ evidence, change });
    return;
  }
  print('');
  showRuleChange(change, options);
}
