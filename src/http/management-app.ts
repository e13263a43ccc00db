import Router from '@koa/router';
import Koa from 'koa';
import { invalidRequest } from '../domain/errors.ts';
import type { Telemetry } from '../telemetry.ts';
import { accessLog } from './middleware/access-log.ts';
import { authenticateMaster } from './middleware/authenticate-master.ts';
import { clientAddress } from './middleware/client-address.ts';
import { errorEnvelope } from './middleware/error-envelope.ts';
import { type HostCheckOptions, hostCheck } from './middleware/host-check.ts';
import { type BodyLimits, jsonBody } from './middleware/json-body.ts';
import { methodNotAllowed } from './middleware/method-not-allowed.ts';
import { type Load, overload } from './middleware/overload.ts';
import { requestId } from './middleware/request-id.ts';
import { healthRoutes, type Readiness } from './routes/health.ts';
import { directoryRoutes } from './routes/master/directory.ts';
import { ruleRoutes } from './routes/master/iam-rules.ts';
import { keyRoutes } from './routes/master/keys.ts';
import type { MasterDeps } from './routes/master/master-route.ts';
import type { AppMiddleware, RequestState } from './state.ts';

export interface ManagementDeps extends MasterDeps {
  telemetry: Telemetry;
  load: Load;
  readiness: Readiness;
  hosts: HostCheckOptions;
  bodyLimits: BodyLimits;
}

/** A path that cannot be decoded names nothing: 400, before the router would take it as it stands. */
const decodablePath: AppMiddleware = (ctx, next) => {
  try {
    decodeURIComponent(ctx.path);
  } catch {
    throw invalidRequest('The path of the request is not valid percent-encoding.');
  }
  return next();
};

/** The management host's transport half: health, and the master API. */
export function createManagementApp(deps: ManagementDeps): Koa<RequestState> {
  const { telemetry, load } = deps;
  const router = new Router<RequestState>();
  const master = {
    router,
    deps,
    authenticated: authenticateMaster(deps),
    jsonBody: jsonBody(load, deps.bodyLimits),
  };

  healthRoutes(router, deps.readiness);
  keyRoutes(master);
  ruleRoutes(master);
  directoryRoutes(master);

  const app = new Koa<RequestState>();
  app
    .use(requestId)
    .use(accessLog(telemetry))
    .use(errorEnvelope(telemetry))
    .use(overload(load))
    .use(hostCheck(deps.hosts))
    .use(clientAddress(deps.trustedProxies))
    .use(decodablePath)
    .use(router.routes())
    .use(methodNotAllowed(router));
  app.on('error', (error) => telemetry.failure('', error));
  return app;
}
