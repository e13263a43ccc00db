import Router from '@koa/router';
import Koa from 'koa';
import type { RefusedRecorder } from '../admin/log/record-refused.ts';
import type { TrustedProxies } from '../domain/client-ip.ts';
import type { PolicyStatus } from '../policy/active-policy.ts';
import type { Telemetry } from '../telemetry.ts';
import type { Load } from './load.ts';
import { accessLog } from './middleware/access-log.ts';
import { clientAddress } from './middleware/client-address.ts';
import { crossOrigin } from './middleware/cross-origin.ts';
import { errorEnvelope } from './middleware/error-envelope.ts';
import { type HostCheckOptions, hostCheck } from './middleware/host-check.ts';
import type { BodyLimits } from './middleware/json-body.ts';
import { methodNotAllowed, nothingThere } from './middleware/method-not-allowed.ts';
import { overload } from './middleware/overload.ts';
import { requestId } from './middleware/request-id.ts';
import { decodablePath, query } from './middleware/request-target.ts';
import { COMMON } from './operations/common.ts';
import { pageFaults } from './pages/page.ts';
import { register } from './register.ts';
import { descriptionHandlers } from './routes/description.ts';
import { healthHandlers, type Readiness } from './routes/health.ts';
import type { AppContext, RequestState } from './state.ts';

/** What both listeners work with. */
export interface AppDeps {
  telemetry: Telemetry;
  load: Load;
  readiness: Readiness;
  policyStatus: () => PolicyStatus;
  hosts: HostCheckOptions;
  /** Origins whose web pages may call. */
  allowedOrigins: readonly string[];
  /** Undefined: `TRUSTED_PROXIES` is unset. */
  trustedProxies: TrustedProxies | undefined;
  bodyLimits: BodyLimits;
  /** Records requests that are refused before they are calls; absent: nothing does. */
  refused?: RefusedRecorder | undefined;
}

/**
 * A listener's transport half: the steps before every route in their order, then the routes that `addRoutes` puts, and what both
 * listeners have. A router looks at all of its routes for each request, so those that are busy have one of their own, asked first.
 */
export function createApp(
  listener: 'gateway' | 'management',
  deps: AppDeps,
  addRoutes: (busy: Router<RequestState>, others: Router<RequestState>) => void,
): Koa<RequestState> {
  const { telemetry } = deps;
  const busy = new Router<RequestState>();
  const others = new Router<RequestState>();
  register(others, COMMON, { ...healthHandlers(deps.readiness, deps.policyStatus), ...descriptionHandlers(listener) });
  addRoutes(busy, others);

  const app = new Koa<RequestState>();
  app.use(requestId).use(accessLog(telemetry, deps.refused));
  if (deps.allowedOrigins.length > 0) app.use(crossOrigin(deps.allowedOrigins));
  app
    .use(errorEnvelope(telemetry))
    .use(pageFaults)
    .use(query)
    .use(clientAddress(deps.trustedProxies))
    .use(overload(deps.load))
    .use(hostCheck(deps.hosts))
    .use(decodablePath)
    .use(busy.routes())
    .use(others.routes())
    .use(methodNotAllowed([busy, others]))
    .use(nothingThere(listener));
  // What is thrown past the envelope; but that the client has reset its connection is no failure.
  app.on('error', (error: unknown, ctx?: AppContext) => {
    if (ctx?.req.socket.destroyed !== true) telemetry.failure(ctx?.state.requestId ?? '', error);
  });
  return app;
}
