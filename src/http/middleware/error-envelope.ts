import { ApiError, notFound, policyUnavailable } from '../../domain/errors.ts';
import { PolicyFailure } from '../../policy/policy-failure.ts';
import type { Telemetry } from '../../telemetry.ts';
import type { AppMiddleware } from '../state.ts';

/**
 * The answer for anything thrown. What is not an `ApiError` is a fault of ours: its text stays inside.
 */
export function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof PolicyFailure) return policyUnavailable(error);
  return new ApiError(500, 'internal_error', 'An internal error occurred.', { cause: error });
}

/** The only catch in HTTP: every failure becomes the error envelope with all four keys, and is logged here, once. */
export function errorEnvelope(telemetry: Telemetry): AppMiddleware {
  return async (ctx, next) => {
    try {
      await next();
      if (ctx.status === 404 && ctx.body == null && ctx.respond !== false)
        throw notFound(`There is nothing at ${ctx.path}.`);
    } catch (thrown) {
      const error = toApiError(thrown);
      if (error.status === 500 || error.status === 503) telemetry.failure(ctx.state.requestId, error);
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
