import { checkOpenAiShape } from '../../domain/check-shape.ts';
import type { Validator } from '../../generated/validators.js';
import type { Telemetry } from '../../telemetry.ts';
import type { AppContext } from '../state.ts';
import { timed } from './timed.ts';

/** Step 7 of the journey: the parsed body as the request that the validator says it is. @throws ApiError 400 */
export const checkedBody = <T>({ state }: AppContext, validator: Validator<T>, telemetry: Pick<Telemetry, 'ran'>): T =>
  timed('validating a request body', state.bodyBytes, telemetry, () => checkOpenAiShape(validator, state.body));
