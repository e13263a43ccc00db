import { hash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { canonicalAddress } from '../../domain/client-ip.ts';
import { permissionDenied, unauthorized } from '../../domain/errors.ts';
import type { ManagementId } from '../operations/management.ts';
import type { Handlers } from '../register.ts';
import { bearerToken } from '../request/credential.ts';

export interface MetricsRouteDeps {
  /** All metrics, in Prometheus' text format. */
  exposition(): Promise<string>;
  /** Undefined: only this machine itself may look. */
  metricsToken: () => string | undefined;
}

const digest = (text: string): Buffer => hash('sha256', text, 'buffer');

/** Takes as long for any token, so that it cannot be found out letter by letter. */
const isSame = (given: string, expected: string): boolean => timingSafeEqual(digest(given), digest(expected));

/** What proxies add: the connection is then the proxy's, and anyone may stand behind it. */
const OF_PROXIES = ['forwarded', 'via', 'x-forwarded-for', 'x-real-ip'] as const;

/** From this machine itself, whatever `TRUSTED_PROXIES` says: a header can only take this away. */
function isLocal({ socket, headers }: IncomingMessage): boolean {
  if (OF_PROXIES.some((name) => headers[name] !== undefined)) return false;
  const address = canonicalAddress(socket.remoteAddress ?? '');
  return address === '::1' || address?.startsWith('127.') === true;
}

/** @throws ApiError 401, 403, or 400 for an ambiguous credential */
function assertMayLook(req: IncomingMessage, metricsToken: string | undefined): void {
  if (isLocal(req)) return;
  if (metricsToken === undefined)
    throw permissionDenied('Access denied: without METRICS_TOKEN, metrics can be read from the machine itself only.');
  const token = bearerToken(req);
  if (token === undefined || !isSame(token, metricsToken)) {
    throw unauthorized('invalid_api_key', 'The metrics token is missing or not valid.');
  }
}

/** `GET /metrics`: for loopback, or with the token (src/http/README.md, "Metrics"). */
export const metricsHandlers = ({ exposition, metricsToken }: MetricsRouteDeps) =>
  ({
    getMetrics: async (ctx) => {
      assertMayLook(ctx.req, metricsToken());
      ctx.type = 'text/plain; version=0.0.4; charset=utf-8';
      ctx.body = await exposition();
    },
  }) satisfies Partial<Handlers<ManagementId>>;
