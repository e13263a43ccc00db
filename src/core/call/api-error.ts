import { ApiError, policyUnavailable } from '../../domain/errors.ts';
import { PolicyFailure } from '../../policy/policy-failure.ts';

/** Whatever an operation throws, as the error for its caller. What is not an `ApiError` is a fault of ours: its text stays inside. */
export function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof PolicyFailure) return policyUnavailable(error);
  return new ApiError(500, 'internal_error', 'An internal error occurred.', { cause: error });
}
