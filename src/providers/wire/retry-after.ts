import { type Clock, systemClock } from '../../domain/time.ts';
import type { ResponseHeaders } from '../../net/exchange.ts';

/** An upstream may not keep us away for longer (src/core/README.md, "the last failure"). */
const MAX_MS = 300_000;

/**
 * Milliseconds after which the upstream wants to be asked again, 0 to 300,000: `retry-after-ms`, else `retry-after` in seconds
 * or as an HTTP date. Undefined when it said nothing, or nothing readable.
 */
export function retryAfterMs(headers: ResponseHeaders, clock: Clock = systemClock): number | undefined {
  const milliseconds = headers['retry-after-ms'];
  const after = headers['retry-after'];
  for (const wait of [number(milliseconds), number(after, 1000), untilDate(after, clock)]) {
    if (wait !== undefined) return Math.min(Math.max(0, Math.ceil(wait)), MAX_MS);
  }
  return undefined;
}

function number(value: ResponseHeaders[string], unit = 1): number | undefined {
  return typeof value === 'string' && /^\s*\d+(\.\d+)?\s*$/.test(value) ? Number(value) * unit : undefined;
}

function untilDate(value: ResponseHeaders[string], clock: Clock): number | undefined {
  // A bare number would be read as a year.
  if (typeof value !== 'string' || !/[a-z]/i.test(value)) return undefined;
  const date = Date.parse(value);
  return Number.isNaN(date) ? undefined : date - clock.now();
}
