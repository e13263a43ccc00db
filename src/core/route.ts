import { comparePrice } from '../catalog/cheapest.ts';
import { ApiError } from '../domain/errors.ts';
import type { RoutingAttempt } from '../generated/types.ts';
import { TransportError } from '../net/transport-error.ts';
import type { Providers } from '../providers/providers.ts';
import { fromTransportError, UpstreamError } from '../providers/upstream-error.ts';
import type { Telemetry } from '../telemetry.ts';
import type { Call } from './call.ts';
import type { CallContext } from './call-context.ts';
import type { Target } from './target.ts';

/** Most attempts for one call, the first included (decisions.md, section 5, "failover"). */
const MAX_ATTEMPTS = 3;

export interface Routed<T> {
  readonly value: T;
  readonly target: Target;
  /** Every attempt in order; the last one succeeded. */
  readonly attempts: readonly RoutingAttempt[];
}

/** A call that no attempt served: why is the cause, and what was tried. */
export class RouteFailure extends Error {
  readonly attempts: readonly RoutingAttempt[];

  constructor(cause: unknown, attempts: readonly RoutingAttempt[]) {
    super('No attempt served the call.', { cause });
    this.attempts = attempts;
  }
}

export interface RouteDeps {
  readonly providers: Providers;
  readonly telemetry: Telemetry;
}

/** One exchange with a target. @throws TransportError, UpstreamError */
export type Attempt<T> = (target: Target) => Promise<T>;

const NO_RETRY = { 'x-should-retry': 'false' };

/** What a caller is told when the last attempt has failed (decisions.md, section 5, errors). */
export function failureAnswer(error: UpstreamError): ApiError {
  if (error.errorType === 'rejected') return new ApiError(400, 'invalid_request', error.message, { cause: error });
  const [status, code] = error.errorType === 'timeout' ? [504, 'upstream_timeout'] : [502, 'upstream_error'];
  return new ApiError(status, code, error.message, { cause: error, headers: NO_RETRY });
}

/** Anything an attempt throws, as a failed attempt; what is neither the network's nor the provider's doing is a bug and passes. */
export function toUpstreamError(error: unknown): UpstreamError {
  if (error instanceof UpstreamError) return error;
  if (error instanceof TransportError) return fromTransportError(error);
  throw error;
}

function attemptRecord(target: Target, callId: string, error: UpstreamError | undefined): RoutingAttempt {
  const { mapping, credential } = target;
  const status = error === undefined ? 200 : error.status;
  return {
    provider: mapping.providerId,
    model: mapping.modelId,
    region: mapping.region ?? 'global',
    ...(status === undefined ? {} : { status_code: status }),
    error_type: error?.errorType ?? 'none',
    succeeded: error === undefined,
    ...(credential.apiKeyHash === undefined ? {} : { apiKeyHash: credential.apiKeyHash }),
    credentialSource: credential.source,
    ...(credential.providerKeyId === undefined ? {} : { providerKeyId: credential.providerKeyId }),
    ...(credential.providerKeyLabel === undefined ? {} : { providerKeyLabel: credential.providerKeyLabel }),
    logId: callId,
  };
}

/**
 * Tries the permitted candidates, cheapest first, until one attempt succeeds. Only what `Permitted` holds is ever called, and
 * each attempt asserts it anew.
 * @throws RouteFailure, whatever happened
 */
export async function route<T>(
  { providers, telemetry }: RouteDeps,
  { id: callId, permitted, opened }: Call,
  projectId: string,
  context: CallContext,
  attempt: Attempt<T>,
): Promise<Routed<T>> {
  const order = permitted.candidates.length === 1 ? permitted.candidates : [...permitted.candidates].sort(comparePrice);
  const attempts: RoutingAttempt[] = [];
  let last: UpstreamError | undefined;
  try {
    for (const mapping of order.slice(0, context.noFallback ? 1 : MAX_ATTEMPTS)) {
      // The first attempt follows at once on the opening of the call, which read the revision.
      await permitted.assertHolds(mapping, attempts.length === 0 ? opened.ruleRevision : undefined);
      const provider = providers.find(mapping.providerId);
      const credential = providers.credential(mapping.providerId, projectId);
      if (provider === undefined || credential === undefined) continue; // withdrawn since the candidates were resolved
      const target: Target = { mapping, provider, credential };
      try {
        const value = await attempt(target);
        attempts.push(attemptRecord(target, callId, undefined));
        return { value, target, attempts };
      } catch (thrown) {
        last = toUpstreamError(thrown);
        attempts.push(attemptRecord(target, callId, last));
        if (!context.signal.aborted) telemetry.attemptFailed(callId, mapping.id, last.errorType, last.message);
        if (!last.retryable) break;
      }
    }
    throw failureAnswer(last ?? new UpstreamError('connection', 'No provider is left to serve the call.'));
  } catch (error) {
    throw new RouteFailure(error, attempts);
  }
}
