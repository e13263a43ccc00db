import { type Command, InvalidArgumentError, Option } from 'commander';
import { exportDecisions } from '../../admin/log/decision-export.ts';
import { readLogRequest, seenBy } from '../../admin/log/log-query.ts';
import { getCall, getLoggedDecision, listCalls, listDecisions } from '../../admin/log/log-view.ts';
import { findNames } from '../../store/tenants/names.ts';
import { callTail, decisionTail, showCall, showCalls, showDecision, showDecisions } from '../output/log-output.ts';
import { type FilterOptions, isOurs, logRequestOf, type SearchOptions } from '../run/log-request.ts';
import { runTail, type TailOptions } from '../run/run-tail.ts';
import { type Environment, inWorkspace, type Workspace } from '../run/workspace.ts';
import { type CommonOptions, common, ORGANIZATION } from '../terminal/common-options.ts';
import { filterOptions, pageOptions } from '../terminal/log-options.ts';
import { write } from '../terminal/output.ts';
import { progressBar } from '../terminal/progress.ts';
import { timeOptions } from '../terminal/time-options.ts';

const searchOptions = (command: Command): Command => pageOptions(timeOptions(filterOptions(common(command))));

const tailOptions = (command: Command): Command =>
  filterOptions(common(command))
    .addOption(
      new Option('-n, --last <n>', 'how many of the past come first, 0 to 200').argParser(parseLast).default(10),
    )
    .addHelpText('after', TAIL_HELP);

const TAIL_HELP = `
Each is shown when its call is over. Ctrl-C ends. With --json, each is a line.`;

function parseLast(text: string): number {
  const last = /^(?:0|[1-9][0-9]{0,2})$/.test(text) ? Number(text) : 201;
  if (last > 200) throw new InvalidArgumentError('It must be a whole number from 0 to 200.');
  return last;
}

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
        const list = listDecisions(workspace.db, logRequestOf(workspace, options));
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

  tailOptions(decisions.command('tail'))
    .description('Follow decisions as they are made, by a running server or the next one.')
    .action((options: TailOptions) => runTail(env, options, decisionTail(options), true));

  timeOptions(filterOptions(decisions.command('export').option('--org <organization>', ORGANIZATION)))
    .description("Write decisions as NDJSON, in the format of OPA's decision log. The oldest come first.")
    .action(async (options: FilterOptions) => {
      await inWorkspace(env, 'read', options.org, (workspace) => writeDecisions(workspace, options));
    });
}

/** Text that is written at once. */
const CHUNK = 65_536;

async function writeDecisions(workspace: Workspace, options: FilterOptions): Promise<void> {
  const { db, now } = workspace;
  const { filter } = logRequestOf(workspace, options);
  const to = filter.to ?? now;
  const bar = progressBar('Writing');
  let text = '';
  let first: number | undefined;
  try {
    for (const { line, time } of exportDecisions(db, { ...filter, to })) {
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
        const list = listCalls(workspace.db, logRequestOf(workspace, options));
        const keys = list.calls.map((call) => call.keyId);
        showCalls(list, namesOf(workspace, keys), options);
      }),
    );

  tailOptions(calls.command('tail'))
    .description('Follow calls as they end, by a running server or the next one.')
    .action((options: TailOptions) => runTail(env, options, callTail(options), false));

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
