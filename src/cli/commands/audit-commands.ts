import { type Command, InvalidArgumentError, Option } from 'commander';
import { listAudit } from '../../admin/audit/audit.ts';
import { AUDIT_ACTIONS } from '../../admin/audit/audit-trail.ts';
import type { AuditRecord } from '../../generated/types.ts';
import { type ChainVerdict, verifyAuditChain } from '../../store/audit/audit-chain.ts';
import { showAudit, showVerdict } from '../output/audit-output.ts';
import { type Environment, inDatabase, inWorkspace, secretsOf, type Workspace } from '../run/workspace.ts';
import { type CommonOptions, listing } from '../terminal/common-options.ts';
import { progressBar } from '../terminal/progress.ts';

interface ListOptions extends CommonOptions {
  readonly action?: string;
  readonly target?: string;
  readonly from?: string;
  readonly to?: string;
  readonly limit: number;
}

interface VerifyOptions {
  readonly head?: string;
  readonly json?: true;
}

const MAX_PAGE = 200;

function parseLimit(text: string): number {
  if (!/^[1-9][0-9]{0,8}$/.test(text)) throw new InvalidArgumentError('It must be a whole number from 1.');
  return Number(text);
}

function parseHead(text: string): string {
  if (!/^[0-9a-f]{64}$/.test(text)) throw new InvalidArgumentError('It must be the 64 digits that verify printed.');
  return text;
}

/** The newest entries that are asked for, page by page. */
function newest({ db, actor }: Workspace, { limit, action, target, from, to }: ListOptions) {
  const entries: AuditRecord[] = [];
  let cursor: string | undefined;
  for (;;) {
    const page = { limit: Math.min(limit - entries.length, MAX_PAGE), cursor };
    const listed = listAudit(db, actor, { ...page, action, targetId: target, from, to });
    entries.push(...listed.entries);
    const { nextCursor } = listed;
    if (nextCursor === null || entries.length === limit) return { entries, nextCursor };
    cursor = nextCursor;
  }
}

async function verify(env: Environment, noted: string | undefined): Promise<ChainVerdict> {
  const bar = progressBar('Verifying');
  try {
    return await inDatabase(
      env,
      'read',
      (db, config) => verifyAuditChain(db, secretsOf(config).signingKey.key, noted, bar.show),
      'signing key',
    );
  } finally {
    bar.end();
  }
}

const VERIFY_HELP = `
The head is the last entry. Who notes it elsewhere, and gives it as --head the next time, also learns when entries were taken
away at the end. The log is one chain over all organizations of the installation.`;

/** `portcullis audit …`. */
export function auditCommands(program: Command, env: Environment): void {
  const audit = program.command('audit').description('Show the audit log, and verify that no one has changed it.');

  listing(audit.command('list'))
    .description(
      'List the management changes, newest first. With `--json` each has the states before and after and its place in the chain.',
    )
    .addOption(new Option('--action <action>', 'only these').choices(AUDIT_ACTIONS))
    .option('--target <id>', 'only changes of this key, rule, member, …')
    .option('--from <time>', 'not before this time or day: 2026-01-31, 2026-01-31T12:00:00Z')
    .option('--to <time>', 'before this time, or to the end of this day')
    .addOption(new Option('--limit <n>', 'how many at most').argParser(parseLimit).default(50))
    .action(async (options: ListOptions) => {
      showAudit(await inWorkspace(env, 'read', options.org, (workspace) => newest(workspace, options)), options);
    });

  audit
    .command('verify')
    .description(
      'Verify every entry; at the first broken one, print it and exit with 1. Otherwise the head of the log is printed.',
    )
    .addOption(new Option('--head <hmac>', 'a head that was noted earlier').argParser(parseHead))
    .option('--json', 'print JSON')
    .addHelpText('after', VERIFY_HELP)
    .action(async ({ head, json }: VerifyOptions) => {
      showVerdict(await verify(env, head), head, json);
    });
}
