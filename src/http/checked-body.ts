import { checkShape } from '../domain/check-shape.ts';
import type { Validator } from '../generated/validators.js';
import type { Telemetry } from '../telemetry.ts';
import type { AppContext } from './state.ts';

/** Step 7 of the journey: the parsed body as the request that the validator says it is. @throws ApiError 400 */
export function checkedBody<T>(ctx: AppContext, validator: Validator<T>, telemetry: Pick<Telemetry, 'ran'>): T {
  const startedAt = performance.now();
  try {
    return checkShape(validator, ctx.state.body);
  } finally {
    telemetry.ran('validating a request body', startedAt);
  }
}
