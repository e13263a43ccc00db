import { once } from 'node:events';
import { type Command, Option } from 'commander';
import { exportDecisions } from '../../admin/log/decision-export.ts';
import { type LogRequest, readLogRequest, seenBy } from '../../admin/log/log-query.ts';
import { getCall, getLoggedDecision, listCalls, listDecisions } from '../../admin/log/log-view.ts';
import { parseTime, parseTimeEnd } from '../../domain/time.ts';
import { findNames } from '../../store/tenants/names.ts';
import { showCall, showCalls, showDecision, showDecisions } from '../output/log-output.ts';
import { groupId, keyId } from '../run/references.ts';
import { type Environment, inWorkspace, type Workspace } from '../run/workspace.ts';
import { type CommonOptions, common, named } from '../terminal/common-options.ts';
import { progressBar } from '../terminal/progress.ts';
import { beginOf, type TimeOptions, timeOptions } from '../terminal/time-options.ts';

interface SearchOptions extends TimeOptions, CommonOptions {
  readonly key?: string;
  readonly member?: string;
  readonly model?: string;
  readonly provider?: string;
  readonly outcome?: string;
  readonly reason?: string;
  readonly rule?: string;
  readonly group?: string;
  readonly address?: string;
  readonly request?: string;
  readonly limit?: string;
  readonly cursor?: string;
}

const isOurs = (request: string): boolean => /^req_[0-9a-f]{32}$/.test(request);

function requestOf(workspace: Workspace, options: SearchOptions): LogRequest {
  const { db, actor, now } = workspace;
  const { key, member, model, provider, outcome, reason, rule, group, address, request, to, limit, cursor } = options;
  const query = named({
    keyId: key === undefined ? undefined : keyId(workspace, key),
    memberId: member,
    model,
    provider,
    outcome,
    reason,
    ruleId: rule,
    // A group that is gone has its id alone.
    groupId: group === undefined || /^grp_[0-9a-f]{32}$/.test(group) ? group : groupId(workspace, group),
    address,
    from: beginOf(options, now),
    to,
    limit,
    cursor,
  });
  const asked = request === undefined ? {} : { [isOurs(request) ? 'requestId' : 'clientRequestId']: request };
  return readLogRequest(db, actor, { ...query, ...asked });
}

const searchOptions = (command: Command): Command =>
  timeOptions(common(command))
    .option('--key <key>', 'id, masked token or description')
    .option('--member <member>', "with one member's keys: membership id or e-mail")
    .option('--model <model>', 'that was asked for, or that served')
    .option('--provider <provider>', 'that served')
    .addOption(new Option('--outcome <outcome>', 'of the policy').choices(['permit', 'deny']))
    .option('--reason <type>', 'what denied, such as deny_models')
    .option('--rule <id>', 'that was violated, or stands in a shadow decision')
    .option('--group <group>', 'that the key or its owner was in: id, or name')
    .option('--address <address>', "the caller's")
    .option('--request <id>', "the request's id, or the caller's own")
    .option('--limit <n>', 'how many at most, 1 to 200 (default: 50)')
    .option('--cursor <cursor>', 'where the page before ended');

const namesOf = ({ db, actor }: Workspace, ids: readonly string[]): ReadonlyMap<string, string> =>
  findNames(db, actor.organizationId, ids);

/** The call or decision that a person means by its id, or by that of its request, ours or the caller's own: the last one of that. */
function idOf({ db, actor }: Workspace, reference: string): string {
  if (/^(?:call|dec)_/.test(reference)) return reference;
  const by = isOurs(reference) ? { requestId: reference } : { clientRequestId: reference };
  const [call] = listCalls(db, readLogRequest(db, actor, { ...by, limit: '1' })).calls;
  if (call === undefined) throw new Error(`There is no call or request with the id "${reference}".`);
  return call.id;
}

const SHOW_HELP = `
The id is that of the decision, the call or the request (x-decision-id and x-request-id of the answer), or the one that the caller
sent as x-request-id.`;

/** `portcullis decisions …`. */
export function decisionCommands(program: Command, env: Environment): void {
  const decisions = program.command('decisions').description('Show how calls were decided, and why.');

  searchOptions(decisions.command('list'))
    .description('List decisions, newest first.')
    .action((options: SearchOptions) =>
      inWorkspace(env, 'read', options.org, (workspace) => {
        const list = listDecisions(workspace.db, requestOf(workspace, options));
        const keys = list.decisions.map((entry) => entry.keyId);
        showDecisions(list, namesOf(workspace, keys), options);
      }),
    );

  common(decisions.command('show <id>'))
    .description('Explain one decision. It is shown with the rules that it saw, and all of it with `--json`.')
    .addHelpText('after', SHOW_HELP)
    .action((id: string, options: CommonOptions) =>
      inWorkspace(env, 'read', options.org, (workspace) => {
        const { db, actor } = workspace;
        const decision = getLoggedDecision(db, seenBy(actor), idOf(workspace, id));
        const { keyId: key, memberId, projectId } = decision;
        showDecision(decision, namesOf(workspace, [key, memberId, projectId]), options);
      }),
    );

  timeOptions(decisions.command('export'))
    .option('--org <organization>', 'the organization, where there are several')
    .description("Write decisions as NDJSON, in the format of OPA's decision log. The oldest come first.")
    .action(async (options: TimeOptions & CommonOptions) => {
      await inWorkspace(env, 'read', options.org, (workspace) => writeDecisions(workspace, options));
    });
}

/** Text that is written at once. */
const CHUNK = 65_536;

async function writeDecisions({ db, actor, now }: Workspace, options: TimeOptions): Promise<void> {
  const begin = beginOf(options, now);
  const from = begin === undefined ? 0 : parseTime(begin, '/from');
  const to = options.to === undefined ? now : parseTimeEnd(options.to, '/to');
  const bar = progressBar('Writing');
  const write = async (text: string): Promise<void> => {
    if (!process.stdout.write(text)) await once(process.stdout, 'drain');
  };
  let text = '';
  let first: number | undefined;
  try {
    for (const { line, time } of exportDecisions(db, actor.organizationId, from, to)) {
      text += `${line}\n`;
      if (text.length < CHUNK) continue;
      await write(text);
      text = '';
      first ??= time;
      bar.show(Math.floor((100 * (time - first)) / Math.max(1, to - first)), 100);
    }
    await write(text);
  } finally {
    bar.end();
  }
}

/** `portcullis calls …`. */
export function callCommands(program: Command, env: Environment): void {
  const calls = program.command('calls').description('Show what was called, and how it ended.');

  searchOptions(calls.command('list'))
    .description('List calls, newest first.')
    .action((options: SearchOptions) =>
      inWorkspace(env, 'read', options.org, (workspace) => {
        const list = listCalls(workspace.db, requestOf(workspace, options));
        const keys = list.calls.map((call) => call.keyId);
        showCalls(list, namesOf(workspace, keys), options);
      }),
    );

  common(calls.command('show <id>'))
    .description('Show one call, with its tokens, its cost and its attempts.')
    .addHelpText('after', SHOW_HELP)
    .action((id: string, options: CommonOptions) =>
      inWorkspace(env, 'read', options.org, (workspace) => {
        const { db, actor } = workspace;
        const call = getCall(db, seenBy(actor), idOf(workspace, id));
        const { keyId: key, memberId, projectId } = call;
        showCall(call, namesOf(workspace, [key, memberId, projectId]), options);
      }),
    );
}
