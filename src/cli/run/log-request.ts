import { type LogRequest, readLogRequest } from '../../admin/log/log-query.ts';
import { type CommonOptions, named } from '../terminal/common-options.ts';
import { beginOf, type TimeOptions } from '../terminal/time-options.ts';
import { groupId, keyId } from './references.ts';
import type { Workspace } from './workspace.ts';

/** What the log is searched by. */
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
