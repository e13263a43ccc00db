import { setTimeout as pause } from 'node:timers/promises';
import { databasePath } from '../../store/db/data-dir.ts';
import { type Database, openDatabase } from '../../store/db/database.ts';
import { follow, positionNow } from '../../store/ledger/call-follower.ts';
import { type CallFilter, type LoggedCall, readWanted, searchCalls } from '../../store/ledger/call-log.ts';
import { findNames } from '../../store/tenants/names.ts';
import type { ShowNext } from '../output/log-output.ts';
import { type FilterOptions, logRequestOf } from './log-request.ts';
import { BUSY_TIMEOUT_MS, type Environment, inWorkspace } from './workspace.ts';

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
  // What is open, or made from now on, comes later.
  const isPast = ({ number, state }: LoggedCall): boolean => number <= position.after && state !== 'open';
  if (last > 0) showSome(searchCalls(db, filter, { limit: last }).items.filter(isPast).reverse());
  while (!stop.aborted) {
    const followed = follow(db, position, AT_ONCE);
    position = followed.position;
    if (followed.numbers.length > 0) showSome(readWanted(db, followed.numbers, filter, 'asc'));
    if (!followed.isBehind) await pause(EVERY_MS, undefined, { signal: stop }).catch(() => undefined);
  }
}
