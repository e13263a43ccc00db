import { type Command, InvalidArgumentError, Option } from 'commander';
import { exportDecisions } from '../admin/log/decision-file.ts';
import { readLogRequest, readRefusedListRequest, seenBy } from '../admin/log/log-query.ts';
import {
  getCall,
  getLoggedDecision,
  listCalls,
  listDecisions,
  listRefusedRequests,
  refusedRequestView,
} from '../admin/log/log-view.ts';
import type { RefusedRequestList, RefusedRequestRecord } from '../generated/types.ts';
import { findRefused } from '../store/ledger/refused-requests.ts';
import { findNames } from '../store/tenants/tenants.ts';
import {
  type FilterOptions,
  filterOptions,
  isOurs,
  logRequestOf,
  pageOptions,
  runTail,
  type SearchOptions,
  type TailOptions,
} from './log-filters.ts';
import {
  callTail,
  decisionTail,
  showCall,
  showCalls,
  showDecision,
  showDecisions,
  showRefusedRequest,
  showRefusedRequests,
} from './log-output.ts';
import { keyId } from './record-references.ts';
import {
  beginOf,
  type CommonOptions,
  common,
  listing,
  named,
  ORGANIZATION,
  type TimeOptions,
  timeOptions,
} from './terminal/options.ts';
import { progressBar, write } from './terminal/output.ts';
import { UsageError } from './terminal/usage-faults.ts';
import { type Environment, inWorkspace, type Workspace } from './workspace.ts';

const searchOptions = (command: Command): Command => pageOptions(timeOptions(filterOptions(listing(command))));

const tailOptions = (command: Command): Command =>
  filterOptions(listing(command))
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
export function callIdOf(workspace: Workspace, reference: string): string {
  const id = isCall(reference) ? reference : findCall(workspace, reference);
  if (id === undefined) throw new Error(`There is no call or request with the id "${reference}".`);
  return id;
}

const isCall = (reference: string): boolean => /^(?:call|dec)_/.test(reference);

/** The last call of a request. */
function findCall({ db, actor }: Workspace, reference: string): string | undefined {
  const by = isOurs(reference) ? { requestId: reference } : { clientRequestId: reference };
  const [call] = listCalls(db, readLogRequest(db, actor, { ...by, limit: '1' })).calls;
  return call?.id;
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
        const decision = getLoggedDecision(db, seenBy(actor), callIdOf(workspace, id));
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

/** A refused request of the organization, or of no known key: this machine's operator sees both. */
function findRefusedRequest({ db, actor }: Workspace, id: string): RefusedRequestRecord | undefined {
  const found = findRefused(db, actor.organizationId, id) ?? findRefused(db, null, id);
  return found === undefined ? undefined : refusedRequestView(found);
}

type RefusedOptions = CommonOptions &
  TimeOptions & {
    readonly key?: string;
    readonly member?: string;
    readonly status?: string;
    readonly code?: string;
    readonly unknown?: true;
    readonly limit?: string;
    readonly cursor?: string;
  };

function refusedListOf(workspace: Workspace, options: RefusedOptions): RefusedRequestList {
  const { db, actor, now } = workspace;
  const { key, member, status, code, unknown, to, limit, cursor } = options;
  if (unknown && (key !== undefined || member !== undefined))
    throw new UsageError('Choose --unknown, or --key and --member.');
  const query = named({
    keyId: key === undefined ? undefined : keyId(workspace, key),
    ...{ memberId: member, status, code, from: beginOf(options, now), to, limit, cursor },
  });
  const { filter, page } = readRefusedListRequest(db, actor, query);
  return listRefusedRequests(db, { filter: unknown ? { ...filter, organizationId: null } : filter, page });
}

/** `portcullis requests …`. */
export function requestCommands(program: Command, env: Environment): void {
  const requests = program
    .command('requests')
    .description('Show requests that were refused before they were calls: 401, 404, 429, 400 and the like.');

  pageOptions(timeOptions(listing(requests.command('list'))))
    .description(
      'List refused requests, newest first. They are kept for a day; of many in a short time some have no row.',
    )
    .option('--key <key>', 'id, masked token or description')
    .option('--member <member>', "with one member's keys: membership id or e-mail")
    .option('--status <status>', 'of the answer, such as 401')
    .option('--code <code>', 'of the error, such as invalid_api_key')
    .option('--unknown', 'those that named no key, or none that is known; they belong to no organization')
    .action((options: RefusedOptions) =>
      inWorkspace(env, 'read', options.org, (workspace) => {
        const list = refusedListOf(workspace, options);
        const keys = list.requests.flatMap((each) => each.keyId ?? []);
        showRefusedRequests(list, namesOf(workspace, keys), options);
      }),
    );

  common(requests.command('show <id>'))
    .description("Show why one request was refused. The id is x-request-id of the answer, or the caller's own.")
    .action((id: string, options: CommonOptions) =>
      inWorkspace(env, 'read', options.org, (workspace) => {
        const request = findRefusedRequest(workspace, id);
        if (request === undefined) throw new Error(`There is no refused request with the id "${id}".`);
        showRefused(workspace, request, options);
      }),
    );
}

function showRefused(workspace: Workspace, request: RefusedRequestRecord, options: CommonOptions): void {
  const { keyId: key, memberId, projectId } = request;
  const ids = [key, memberId, projectId].flatMap((each) => each ?? []);
  showRefusedRequest(request, namesOf(workspace, ids), options);
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
    .description(
      'Show one call: its tokens, its cost, where its time went, and its attempts. Of a request that was refused before it was a call, why.',
    )
    .addHelpText('after', SHOW_HELP)
    .action((id: string, options: CommonOptions) =>
      inWorkspace(env, 'read', options.org, (workspace) => {
        const refused = isCall(id) ? undefined : findRefusedRequest(workspace, id);
        if (refused !== undefined && findCall(workspace, id) === undefined) {
          showRefused(workspace, refused, options);
          return;
        }
        const { db, actor } = workspace;
        const call = getCall(db, seenBy(actor), callIdOf(workspace, id));
        const { keyId: key, memberId, projectId } = call;
        showCall(call, namesOf(workspace, [key, memberId, projectId]), options);
      }),
    );
}
