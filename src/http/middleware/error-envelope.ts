import { toApiError } from '../../core/call/api-error.ts';
import { type ApiError, notFound } from '../../domain/errors.ts';
import { UpstreamError } from '../../providers/wire/upstream-error.ts';
import type { Telemetry } from '../../telemetry.ts';
import { leaveUnread } from '../connection/unread-body.ts';
import type { AppContext, AppMiddleware } from '../state.ts';

/**
 * The only catch in HTTP: every failure becomes the error envelope with all four keys. What failed inside is logged here, once;
 * a refusal for lack of room has no cause, and the access log tells of it.
 */
export function errorEnvelope(telemetry: Telemetry): AppMiddleware {
  return async (ctx, next) => {
    try {
      await next();
      if (ctx.status === 404 && ctx.body == null && ctx.respond !== false)
        throw notFound(`There is nothing at ${ctx.path}.`);
      ctx.state.place?.served(ctx.state.network);
    } catch (thrown) {
      answerFault(ctx, faultOf(ctx, thrown), telemetry);
    }
    if (!ctx.req.complete) await leaveUnread(ctx.req, ctx.res);
  };
}

/** What to answer: 503 if the caller has no place left, otherwise what was thrown. */
function faultOf({ state }: AppContext, thrown: unknown): ApiError {
  try {
    state.place?.served(state.network);
  } catch (refusal) {
    return toApiError(refusal);
  }
  return toApiError(thrown);
}

function answerFault(ctx: AppContext, error: ApiError, telemetry: Telemetry): void {
  if (isOurFault(error)) telemetry.failure(ctx.state.requestId, error);
  ctx.state.errorCode = error.code;
  ctx.state.fault = error;
  if (ctx.res.headersSent) {
    ctx.res.destroy();
    return;
  }
  ctx.status = error.status;
  const { faultForm } = ctx.state;
  ctx.set({ ...error.headers, ...faultForm?.headers(error) });
  ctx.type = faultForm?.type ?? 'application/json';
  ctx.body = faultForm?.text(error) ?? JSON.stringify(error.envelope());
}

/** Something failed inside: the database, the policy, the code. */
export const isOurFault = ({ status, cause }: ApiError): boolean =>
  (status === 500 || status === 503) && cause !== undefined && !(cause instanceof UpstreamError);
