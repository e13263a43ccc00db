import { type Command, Option } from 'commander';
import { type BudgetOwner, changeBudget, getBudget, listBudgets } from '../admin/tenants/budgets.ts';
import type { BudgetAnswer, BudgetPatch, BudgetRecord } from '../generated/types.ts';
import { everyPage, memberId, projectId } from './record-references.ts';
import { type LimitOptions, limited, limitFields, limitsText, windowText } from './terminal/limit-options.ts';
import { type CommonOptions, common, listing } from './terminal/options.ts';
import { type Cell, extra, free, printJson, printTable } from './terminal/output.ts';
import { UsageError } from './terminal/usage-faults.ts';
import { type Environment, inWorkspace, type Workspace } from './workspace.ts';

interface OwnerOptions extends CommonOptions {
  readonly member?: string;
  readonly project?: string;
  readonly organization?: true;
}

const owned = (command: Command): Command =>
  common(command)
    .addOption(
      new Option('--member <id|e-mail>', 'the budget of a member: of all keys that they own').conflicts([
        'project',
        'organization',
      ]),
    )
    .addOption(new Option('--project <id|name>', 'the budget of a project').conflicts('organization'))
    .option('--organization', 'the budget of the organization');

function ownerOf(workspace: Workspace, { member, project, organization }: OwnerOptions): BudgetOwner {
  if (member !== undefined) return { kind: 'member', member: memberId(workspace, member) };
  if (project !== undefined) return { kind: 'project', project: projectId(workspace, project) };
  if (organization) return { kind: 'organization' };
  throw new UsageError('Name the owner of the budget: --member, --project or --organization.');
}

const TITLES = [...[free('NAME'), 'OF', 'STATE', 'USD SPENT', 'USD LIMIT', 'USD SPENT IN WINDOW'], ...extra('ID')];

const row = (budget: BudgetRecord): Cell[] => [
  { text: budget.name },
  { text: budget.scope },
  { text: budget.state, colour: budget.state === 'active' ? 'green' : 'yellow' },
  { text: budget.usage },
  { text: limitsText(budget) },
  { text: windowText(budget) },
  { text: budget.id },
];

function show(answer: BudgetAnswer, { json }: CommonOptions): void {
  if (json) printJson(answer);
  else printTable(TITLES, [row(answer.budget)], '', { wide: true });
}

const NO_LIMITS: BudgetPatch = { usageLimit: null, periodUsageLimit: null };

const EXAMPLES = `
A call must fit the limits of its key and every budget of the key's owner, its project and the organization. What was spent
before a budget was set counts in its all-time limit.

Examples:
  $ portcullis budgets set --organization --period-limit 500 --period 1month
  $ portcullis budgets set --member dev@example.com --limit 25
  $ portcullis budgets set --project Default --limit none`;

/** `portcullis budgets …`. */
export function budgetCommands(program: Command, env: Environment): void {
  const budgets = program
    .command('budgets')
    .description('Limit what all keys of a member, a project or the organization spend together.');
  const changing = (options: OwnerOptions, body: BudgetPatch): Promise<BudgetAnswer> =>
    inWorkspace(env, 'write', options.org, (workspace) =>
      changeBudget(workspace.db, workspace.actor, ownerOf(workspace, options), body, workspace.now),
    );

  listing(budgets.command('list'))
    .description('List the budgets that have a limit. Each has what may be spent and what was.')
    .action(async (options: CommonOptions) => {
      const listed = await inWorkspace(env, 'read', options.org, ({ db, actor, now }) =>
        everyPage((page) => {
          const { budgets: items, nextCursor } = listBudgets(db, actor, page, now);
          return { items, nextCursor };
        }),
      );
      if (options.json) printJson({ budgets: listed, nextCursor: null });
      else printTable(TITLES, listed.map(row), 'There are no budgets.', options);
    });

  owned(budgets.command('show'))
    .description('Show what the keys of a member, a project or the organization may spend, and have spent.')
    .action(async (options: OwnerOptions) => {
      const found = await inWorkspace(env, 'read', options.org, (workspace) =>
        getBudget(workspace.db, workspace.actor, ownerOf(workspace, options), workspace.now),
      );
      show(found, options);
    });

  limited(owned(budgets.command('set')))
    .description('Set the limits of a budget; they hold from the next call on.')
    .addHelpText('after', EXAMPLES)
    .action(async (options: OwnerOptions & LimitOptions) => {
      const body = limitFields(options);
      if (Object.keys(body).length === 0) {
        throw new UsageError('Say what to change: --limit, --period-limit, --period.');
      }
      show(await changing(options, body), options);
    });

  owned(budgets.command('remove'))
    .description('Remove both limits of a budget.')
    .action(async (options: OwnerOptions) => {
      show(await changing(options, NO_LIMITS), options);
    });
}
