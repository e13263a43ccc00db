import { isUtf8 } from 'node:buffer';
import { ApiError, invalidRequest } from '../../domain/errors.ts';
import { type JsonBounds, measureJson } from '../../lib/json-bounds.ts';
import type { Telemetry } from '../../telemetry.ts';
import type { Place } from '../load.ts';
import { bodyMemory } from '../request/body-memory.ts';
import { assertBodyType, readBody } from '../request/read-body.ts';
import { timed } from '../request/timed.ts';
import { type AppMiddleware, placeOf } from '../state.ts';

export interface BodyLimits extends JsonBounds {
  readonly bytes: number;
}

function boundFault(exceeded: keyof JsonBounds, bounds: JsonBounds): ApiError {
  switch (exceeded) {
    case 'depth':
      return invalidRequest(`The request body is nested deeper than ${bounds.depth} levels.`);
    case 'values':
      return invalidRequest(`The request body holds more than ${bounds.values} values.`);
    case 'fields':
      return invalidRequest(`An object in the request body has more than ${bounds.fields} fields.`);
  }
}

/** Nothing is parsed that exceeds a bound, or for which there is no room. */
function parseJson(bytes: Buffer, place: Place, bounds: JsonBounds): unknown {
  if (!isUtf8(bytes)) throw new ApiError(400, 'invalid_json', 'The request body is not UTF-8.');
  const size = measureJson(bytes, bounds);
  if (size.exceeded !== undefined) throw boundFault(size.exceeded, bounds);
  place.hold(bodyMemory(bytes, size));
  try {
    const parsed: unknown = JSON.parse(bytes.toString('utf8'));
    return parsed;
  } catch {
    throw new ApiError(400, 'invalid_json', 'The request body is not valid JSON.');
  }
}

/** Step 6 of the journey: bytes become JSON of bounded size and form; 413, 415, 400 or 503 otherwise. */
export function jsonBody(limits: BodyLimits, telemetry: Pick<Telemetry, 'ran'>): AppMiddleware {
  return async (ctx, next) => {
    const { req, res, state } = ctx;
    assertBodyType(req, 'application/json');
    const place = placeOf(ctx);
    const bytes = await readBody(req, res, place, limits.bytes);
    state.bodyBytes = bytes.length;
    state.body = timed('parsing a request body', bytes.length, telemetry, () => parseJson(bytes, place, limits));
    return next();
  };
}
