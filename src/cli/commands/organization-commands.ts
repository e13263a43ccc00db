import { Argument, type Command } from 'commander';
import { createOrganization } from '../../admin/tenants/create-organization.ts';
import type { Tenant } from '../../admin/tenants/new-tenant.ts';
import { changeOrganization, listOrganizations } from '../../admin/tenants/organizations.ts';
import { systemClock } from '../../domain/time.ts';
import type { OrganizationRecord } from '../../generated/types.ts';
import { type Environment, inDatabase, inWorkspace, secretsOf } from '../run/workspace.ts';
import { print, printJson, printTable } from '../terminal/output.ts';

const PLANS = ['free', 'pro', 'enterprise'] as const;

interface Options {
  readonly org?: string;
  readonly json?: true;
}

interface CreateOptions extends Pick<Options, 'json'> {
  readonly owner: string;
}

function show(organizations: readonly OrganizationRecord[]): void {
  const rows = organizations.map(({ id, name, plan, createdAt }) => [id, name, plan, createdAt]);
  printTable(
    ['ID', 'NAME', 'PLAN', 'CREATED'],
    rows.map((row) => row.map((text) => ({ text }))),
    'There are no organizations.',
  );
}

function showNew(tenant: Tenant, json: true | undefined): void {
  if (json) {
    printJson(tenant);
    return;
  }
  const { organization, project, owner, masterKey } = tenant;
  print(`organization  ${organization.id}
project       ${project.id}
owner         ${owner.id} (${owner.email})
master key    ${masterKey.token}

This token is shown once, now. Keep it.`);
}

/** `portcullis organizations …`. */
export function organizationCommands(program: Command, env: Environment): void {
  const organizations = program
    .command('organizations')
    .description('Create and list organizations, and set their plans.');

  organizations
    .command('create')
    .description('Create an organization with a project, its owner and a master key, whose token is shown once, now.')
    .argument('<name>', 'what people call it')
    .requiredOption('--owner <e-mail>', 'address of its first owner')
    .option('--json', 'print JSON')
    .action(async (name: string, { owner, json }: CreateOptions) => {
      const tenant = await inDatabase(env, 'write', (db, config) => {
        const [pepper] = secretsOf(config).peppers;
        return createOrganization(db, { name, ownerEmail: owner }, { now: systemClock.now(), pepper });
      });
      showNew(tenant, json);
    });

  organizations
    .command('list')
    .description('List the organizations of this installation, and their plans.')
    .option('--json', 'print JSON')
    .action(async ({ json }: Options) => {
      const listed = await inDatabase(env, 'read', listOrganizations);
      if (json) printJson({ organizations: listed, nextCursor: null });
      else show(listed);
    });

  organizations
    .command('set-plan')
    .description(
      'Set the plan of an organization: `free`, `pro` or `enterprise`. IP rules can only be written on the enterprise plan; existing ones stay in force.',
    )
    .addArgument(new Argument('<plan>', 'the plan').choices(PLANS))
    .option('--org <organization>', 'the organization, where there are several')
    .option('--json', 'print JSON')
    .action(async (plan: string, { org, json }: Options) => {
      const changed = await inWorkspace(env, 'write', org, ({ db, actor, now }) =>
        changeOrganization(db, actor, { plan }, now),
      );
      if (json) printJson(changed);
      else show([changed.organization]);
    });
}
