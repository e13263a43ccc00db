import { toApiError } from '../../core/api-error.ts';
import { type ApiError, notFound } from '../../domain/errors.ts';
import { UpstreamError } from '../../providers/upstream-error.ts';
import type { Telemetry } from '../../telemetry.ts';
import type { AppMiddleware } from '../state.ts';

/**
 * The only catch in HTTP: every failure becomes the error envelope with all four keys. What failed inside is logged here, once;
 * a refusal for want of room has no cause, and the access log tells of it.
 */
export function errorEnvelope(telemetry: Telemetry): AppMiddleware {
  return async (ctx, next) => {
    try {
      await next();
      if (ctx.status === 404 && ctx.body == null && ctx.respond !== false)
        throw notFound(`There is nothing at ${ctx.path}.`);
    } catch (thrown) {
      const error = toApiError(thrown);
      if (isOurFault(error)) telemetry.failure(ctx.state.requestId, error);
      ctx.state.errorCode = error.code;
      if (ctx.res.headersSent) {
        ctx.res.destroy();
        return;
      }
      ctx.status = error.status;
      ctx.set(error.headers);
      ctx.type = 'application/json';
      ctx.body = JSON.stringify(error.envelope());
    }
  };
}

/** Something failed inside: the database, the policy, the code. */
export const isOurFault = ({ status, cause }: ApiError): boolean =>
  (status === 500 || status === 503) && cause !== undefined && !(cause instanceof UpstreamError);
