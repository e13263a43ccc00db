import type { Telemetry } from '../../telemetry.ts';

/** Work on fewer bytes is done before anybody notices: it is not worth a look at the clock. */
const LARGE = 64 * 1024;

/** Work on a request body, of which the log tells when it keeps everyone waiting. */
export function timed<T>(what: string, bytes: number, telemetry: Pick<Telemetry, 'ran'>, work: () => T): T {
  if (bytes < LARGE) return work();
  const startedAt = performance.now();
  try {
    return work();
  } finally {
    telemetry.ran(what, startedAt, bytes);
  }
}
