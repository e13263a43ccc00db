import { formatUsd } from '../../domain/money.ts';
import type { Telemetry } from '../../telemetry.ts';
import type { AppMiddleware, RequestState } from '../state.ts';

/** A caller who left before the answer began got none; the call's row has the same status and code. */
const CLIENT_LEFT = 499;

/** Of the policy; undefined where it was not asked. */
const outcomeOf = ({ decisionId, reason }: RequestState): 'permit' | 'deny' | undefined => {
  if (decisionId === undefined) return undefined;
  return reason === undefined ? 'permit' : 'deny';
};

/**
 * Logs each request once, and gives back what it holds, when its connection is done with it: `close` comes for an aborted answer
 * too, Koa's `finish` does not.
 */
export function accessLog(telemetry: Telemetry): AppMiddleware {
  return (ctx, next) => {
    const { req, res, state } = ctx;
    res.on('close', () => {
      state.place?.closed();
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
        typeof ctx._matchedRoute === 'string' ? ctx._matchedRoute : 'other',
      );
    });
    return next();
  };
}
