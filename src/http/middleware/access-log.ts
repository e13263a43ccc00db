import type { RefusedRecorder } from '../../admin/log/record-refused.ts';
import { refusedKeyOf } from '../../core/access/authenticate.ts';
import { formatUsd } from '../../domain/money.ts';
import type { Telemetry } from '../../telemetry.ts';
import type { AppContext, AppMiddleware, RequestState } from '../state.ts';
import { ALWAYS_ANSWERED } from './overload.ts';

/** A caller who left before the answer began got none; the call's row has the same status and code. */
const CLIENT_LEFT = 499;

/** Of the policy; undefined where it was not asked. */
const outcomeOf = ({ decisionId, reason }: RequestState): 'permit' | 'deny' | undefined => {
  if (decisionId === undefined) return undefined;
  return reason === undefined ? 'permit' : 'deny';
};

/** Records a request that ended with an error before it was a call. */
function noteRefusal(ctx: AppContext, refused: RefusedRecorder, route: string | undefined): void {
  const { req, res, state, path } = ctx;
  const { fault, principal } = state;
  if (res.statusCode < 400 || state.callId !== undefined || ALWAYS_ANSWERED.has(path)) return;
  const refusedKey = fault === undefined ? undefined : refusedKeyOf(fault);
  refused.note({
    requestId: state.requestId,
    clientRequestId: state.clientRequestId,
    whose: principal ?? refusedKey?.whose,
    statusCode: res.statusCode,
    errorCode: state.errorCode,
    message: fault?.message,
    param: fault?.param,
    detail: refusedKey?.detail,
    method: req.method ?? '',
    path,
    route,
    body: state.body,
    clientAddress: state.clientIp,
    network: state.network,
    userAgent: req.headers['user-agent'],
  });
}

/**
 * Logs each request once, and gives back what it holds, when its connection is done with it: `close` comes for an aborted answer
 * too, Koa's `finish` does not. @param refused undefined: refused requests have no row
 */
export function accessLog(telemetry: Telemetry, refused?: RefusedRecorder): AppMiddleware {
  return (ctx, next) => {
    const { req, res, state } = ctx;
    res.on('close', () => {
      state.place?.closed();
      const route = typeof ctx._matchedRoute === 'string' ? ctx._matchedRoute : undefined;
      if (refused !== undefined && res.headersSent) noteRefusal(ctx, refused, route);
      telemetry.access(
        {
          requestId: state.requestId,
          method: req.method ?? '',
          path: ctx.path,
          status: res.headersSent ? res.statusCode : CLIENT_LEFT,
          durationMs: Math.round((performance.now() - state.arrivedAt) * 1000) / 1000,
          aborted: !res.writableFinished,
          clientIp: state.clientIp,
          keyId: state.principal?.keyId,
          masterKeyId: state.actor?.kind === 'master_key' ? state.actor.masterKeyId : undefined,
          memberId: state.session?.member.id,
          tool: state.tool,
          callId: state.callId,
          decisionId: state.decisionId,
          provider: state.target?.providerId,
          model: state.target?.modelId,
          outcome: outcomeOf(state),
          reason: state.reason,
          cost: state.cost === undefined ? undefined : formatUsd(state.cost),
          code: state.errorCode ?? (res.headersSent ? undefined : 'client_closed_request'),
        },
        route ?? 'other',
      );
    });
    return next();
  };
}
