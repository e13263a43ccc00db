import { setTimeout as pause } from 'node:timers/promises';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { type LogRequest, readLogRequest } from '../admin/log/log-query.ts';
import { entryOf } from '../lib/text.ts';
import { databasePath } from '../store/db/data-dir.ts';
import { type Database, openDatabase } from '../store/db/database.ts';
import { follow, positionNow } from '../store/ledger/call-follower.ts';
import { type CallFilter, type LoggedCall, readWanted, searchCalls } from '../store/ledger/call-log.ts';
import { findNames } from '../store/tenants/tenants.ts';
import type { ShowNext } from './log-output.ts';
import { groupId, keyId } from './record-references.ts';
import { beginOf, type CommonOptions, named, type TimeOptions } from './terminal/options.ts';
import { BUSY_TIMEOUT_MS, type Environment, inWorkspace, type Workspace } from './workspace.ts';

const SLOWER_THAN_UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000 };

/** `2s` in ms. */
function parseSlowerThan(text: string): number {
  const [, digits = '', unit = ''] = /^([0-9]{1,6}(?:\.[0-9]{1,3})?)(ms|s|m)$/.exec(text) ?? [];
  const length = entryOf(SLOWER_THAN_UNITS, unit);
  if (length === undefined) throw new InvalidArgumentError('Write a number and ms, s or m, such as 2s or 500ms.');
  return Math.round(Number(digits) * length);
}

/** Options that filter calls and decisions, except for their time. */
export const filterOptions = (command: Command): Command =>
  command
    .option('--key <key>', 'id, masked token or description')
    .option('--member <member>', "with one member's keys: membership id or e-mail")
    .option('--model <model>', 'that was asked for, or that served')
    .option('--provider <provider>', 'that served')
    .addOption(new Option('--outcome <outcome>', 'of the policy').choices(['permit', 'deny']))
    .option('--reason <type>', 'what denied, such as deny_models')
    .option('--rule <id>', 'that was violated, or stands in a shadow decision')
    .option('--group <group>', 'that the key or its owner was in: id, or name')
    .option('--address <address>', "the caller's, or a CIDR range in which it lies")
    .option('--request <id>', "the request's id, or the caller's own")
    .addOption(new Option('--slower-than <time>', 'that took longer: 2s, 500ms').argParser(parseSlowerThan));

/** Which page of a list. */
export const pageOptions = (command: Command): Command =>
  command
    .option('--limit <n>', 'how many at most, 1 to 200 (default: 50)')
    .option('--cursor <cursor>', 'where the page before ended');

/** Options that filter the log. */
export interface FilterOptions extends TimeOptions, CommonOptions {
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
  /** Milliseconds. */
  readonly slowerThan?: number;
}

export interface SearchOptions extends FilterOptions {
  readonly limit?: string;
  readonly cursor?: string;
}

/** Whether an id is one of the requests that the gateway numbers; any other is a caller's own. */
export const isOurs = (request: string): boolean => /^req_[0-9a-f]{32}$/.test(request);

/** A search, as the master API would read it. @throws UsageError, ApiError */
export function logRequestOf(workspace: Workspace, options: SearchOptions): LogRequest {
  const { db, actor, now } = workspace;
  const { key, member, model, provider, outcome, reason, rule, group, address, request, to, limit, cursor } = options;
  const { slowerThan } = options;
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
    slowerThan: slowerThan === undefined ? undefined : String(slowerThan),
    from: beginOf(options, now),
    to,
    limit,
    cursor,
  });
  const asked = request === undefined ? {} : { [isOurs(request) ? 'requestId' : 'clientRequestId']: request };
  return readLogRequest(db, actor, { ...query, ...asked });
}

export type TailOptions = FilterOptions & { readonly last: number };

/** Between two looks, in ms. */
const EVERY_MS = 500;
/** Rows of the ledger that are looked at in one go. */
const AT_ONCE = 1000;

/** `portcullis decisions tail` and `calls tail`: until SIGINT or SIGTERM, or until nobody reads any more. */
export async function runTail(
  env: Environment,
  options: TailOptions,
  show: ShowNext,
  isDecided: boolean,
): Promise<void> {
  const { filter, path } = await inWorkspace(env, 'read', options.org, (workspace) => ({
    filter: { ...logRequestOf(workspace, options).filter, isDecided },
    path: databasePath(workspace.config.dataDir),
  }));
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort());
  process.stdout.once('error', () => stop.abort());
  const db = openDatabase(path, { readonly: true, busyTimeoutMs: BUSY_TIMEOUT_MS });
  try {
    await tail(db, filter, options.last, show, stop.signal);
  } finally {
    db.close();
  }
}

async function tail(db: Database, filter: CallFilter, last: number, show: ShowNext, stop: AbortSignal): Promise<void> {
  const showSome = (calls: readonly LoggedCall[]): void => {
    if (calls.length === 0) return;
    const keys = calls.map(({ keyId }) => keyId);
    show(calls, findNames(db, filter.organizationId, keys));
  };
  let position = positionNow(db);
  // Open calls, and those made from now on, come later.
  const isPast = ({ number, state }: LoggedCall): boolean => number <= position.after && state !== 'open';
  if (last > 0) showSome(searchCalls(db, filter, { limit: last }).items.filter(isPast).reverse());
  while (!stop.aborted) {
    const followed = follow(db, position, AT_ONCE);
    position = followed.position;
    if (followed.numbers.length > 0) showSome(readWanted(db, followed.numbers, filter, 'asc'));
    if (!followed.isBehind) await pause(EVERY_MS, undefined, { signal: stop }).catch(() => undefined);
  }
}
