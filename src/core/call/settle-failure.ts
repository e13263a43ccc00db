import type { Store } from '../../store/store.ts';
import type { CallContext } from '../access/call-context.ts';
import { toApiError } from './api-error.ts';
import { type Call, failed, releaseCall, settleCall } from './call.ts';
import { RouteFailure } from './route.ts';

/** Status and code under which a failed call is booked; 499 when the caller left, who is told nothing. */
export function failureCode(error: unknown, context: CallContext): [status: number, code: string] {
  if (context.signal.aborted) return [499, 'client_closed_request'];
  const { status, code } = toApiError(error);
  return [status, code];
}

/**
 * Settles a call that failed, or releases it if nothing was sent; returns the error for the caller. It costs what its attempts
 * are charged for.
 */
export async function settleFailure(store: Store, call: Call, context: CallContext, error: unknown): Promise<unknown> {
  const reason = error instanceof RouteFailure ? error.cause : error;
  const [statusCode, errorCode] = failureCode(reason, context);
  if (!(error instanceof RouteFailure)) {
    await settleCall(store, call, failed(statusCode, errorCode, []));
  } else if (error.target !== undefined) {
    const { attempts, charges, target } = error;
    await settleCall(store, call, failed(statusCode, errorCode, attempts, charges, target));
  } else {
    await releaseCall(store, call, statusCode, errorCode);
  }
  return reason;
}
