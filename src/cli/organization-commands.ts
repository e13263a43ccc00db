import { Argument, type Command } from 'commander';
import { listOrganizations, type OrganizationView, PLANS, type Plan, setPlan } from '../admin/organizations.ts';
import { printJson, printTable } from './output.ts';
import { type Environment, inDatabase, inWorkspace } from './workspace.ts';

interface Options {
  readonly org?: string;
  readonly json?: true;
}

function show(organizations: readonly OrganizationView[]): void {
  const rows = organizations.map(({ id, name, plan, createdAt }) => [id, name, plan, createdAt]);
  printTable(
    ['ID', 'NAME', 'PLAN', 'CREATED'],
    rows.map((row) => row.map((text) => ({ text }))),
    'There are no organizations.',
  );
}

/** `portcullis organizations …`. */
export function organizationCommands(program: Command, env: Environment): void {
  const organizations = program.command('organizations').description('List the organizations and set their plans.');

  organizations
    .command('list')
    .description('List the organizations of this installation.')
    .option('--json', 'print JSON')
    .action(async ({ json }: Options) => {
      const listed = await inDatabase(env, 'read', listOrganizations);
      if (json) printJson({ organizations: listed, nextCursor: null });
      else show(listed);
    });

  organizations
    .command('set-plan')
    .description(
      'Put an organization on a plan. IP rules can be written on enterprise only; those that stand stay in force.',
    )
    .addArgument(new Argument('<plan>', 'the plan').choices(PLANS))
    .option('--org <id>', 'the organization, where there are several')
    .option('--json', 'print JSON')
    .action(async (plan: Plan, { org, json }: Options) => {
      const organization = await inWorkspace(env, 'write', org, ({ db, actor, now }) => setPlan(db, actor, plan, now));
      if (json) printJson({ organization });
      else show([organization]);
    });
}
