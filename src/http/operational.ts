import type { IncomingMessage } from 'node:http';
import { canonicalAddress } from '../domain/address.ts';
import { permissionDenied, unauthorized } from '../domain/errors.ts';
import { formatTime } from '../domain/time.ts';
import { isSameSecret } from '../lib/text.ts';
import type { PolicyStatus } from '../policy/pdp.ts';
import type { AppContext } from './app-context.ts';
import { bearerToken } from './authenticate.ts';
import { openApiDocument, referencePage } from './operations/description.ts';
import type { ManagementId } from './operations/management-operations.ts';
import type { CommonId } from './operations/operation.ts';
import type { Handlers } from './routes.ts';

/** For anyone: neither where the policy comes from, nor more than a word on what is wrong with another one. */
const policyOf = ({ digest, revision, activatedAt, refusal }: PolicyStatus) => ({
  digest: digest.slice(0, 12),
  revision: revision ?? null,
  activatedAt: formatTime(activatedAt),
  ...(refusal === undefined ? {} : { refused: refusal.code }),
});

/** `/health`: the process lives. `/ready`: it can decide and record calls; 503 with the reason otherwise. Both listeners have them. */
export const healthHandlers = ({ readiness, policyStatus }: Pick<AppContext, 'readiness' | 'policyStatus'>) =>
  ({
    getHealth: (ctx) => {
      ctx.body = { status: 'ok' };
    },
    getReadiness: async (ctx) => {
      const reason = await readiness();
      ctx.status = reason === undefined ? 200 : 503;
      ctx.body =
        reason === undefined ? { status: 'ready', policy: policyOf(policyStatus()) } : { status: 'not_ready', reason };
    },
  }) satisfies Partial<Handlers<CommonId>>;

/** Headers that proxies add: the connection is then the proxy's, and anyone may stand behind it. */
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
  if (token === undefined || !isSameSecret(token, metricsToken)) {
    throw unauthorized('invalid_api_key', 'The metrics token is missing or not valid.');
  }
}

/** `GET /metrics`: for loopback, or with the token (src/http/README.md, "Metrics"). */
export const metricsHandlers = ({ telemetry, metricsToken }: Pick<AppContext, 'telemetry' | 'metricsToken'>) =>
  ({
    getMetrics: async (ctx) => {
      assertMayLook(ctx.req, metricsToken());
      ctx.type = 'text/plain; version=0.0.4; charset=utf-8';
      ctx.body = await telemetry.exposition();
    },
  }) satisfies Partial<Handlers<ManagementId>>;

/**
 * `/openapi.json` and `/reference`: what this listener can do, for programs and for people. No key is needed. Both are made at the
 * first request for one of them, as bytes: a text would be copied for each client that does not read its answer.
 */
export function descriptionHandlers(listener: 'gateway' | 'management') {
  let made: { readonly document: Buffer; readonly page: Buffer } | undefined;
  const description = () => {
    if (made === undefined) {
      const document = openApiDocument(listener);
      made = { document: Buffer.from(JSON.stringify(document)), page: Buffer.from(referencePage(document)) };
    }
    return made;
  };
  return {
    getOpenApi: (ctx) => {
      ctx.type = 'application/json';
      ctx.body = description().document;
    },
    getReference: (ctx) => {
      ctx.set('content-security-policy', "default-src 'none'; style-src 'unsafe-inline'");
      ctx.type = 'text/html';
      ctx.body = description().page;
    },
  } satisfies Partial<Handlers<CommonId>>;
}
