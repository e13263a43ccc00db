import Router from '@koa/router';
import Koa from 'koa';
import type { Authenticate } from '../core/authenticate.ts';
import type { CompleteChat } from '../core/complete-chat.ts';
import type { ListModels } from '../core/list-models.ts';
import type { TrustedProxies } from '../domain/client-ip.ts';
import type { Telemetry } from '../telemetry.ts';
import { accessLog } from './middleware/access-log.ts';
import { authenticate } from './middleware/authenticate.ts';
import { clientAddress } from './middleware/client-address.ts';
import { errorEnvelope } from './middleware/error-envelope.ts';
import { type HostCheckOptions, hostCheck } from './middleware/host-check.ts';
import { type BodyLimits, jsonBody } from './middleware/json-body.ts';
import { methodNotAllowed } from './middleware/method-not-allowed.ts';
import { type Load, overload } from './middleware/overload.ts';
import { requestId } from './middleware/request-id.ts';
import { chatCompletionsRoute } from './routes/chat-completions.ts';
import { healthRoutes, type Readiness } from './routes/health.ts';
import { modelsRoute } from './routes/models.ts';
import type { RequestState } from './state.ts';

export interface GatewayDeps {
  authenticate: Authenticate;
  completeChat: CompleteChat;
  listModels: ListModels;
  telemetry: Telemetry;
  load: Load;
  readiness: Readiness;
  hosts: HostCheckOptions;
  trustedProxies: TrustedProxies | undefined;
  bodyLimits: BodyLimits;
  keepAliveMs: number;
}

/** The public gateway's transport half: the steps of the journey in their order, then one line for each route. */
export function createGatewayApp(deps: GatewayDeps): Koa<RequestState> {
  const { telemetry, load } = deps;
  const router = new Router<RequestState>();
  const authenticated = authenticate(deps.authenticate);

  healthRoutes(router, deps.readiness);
  router.post('/v1/chat/completions', authenticated, jsonBody(load, deps.bodyLimits), chatCompletionsRoute(deps));
  router.get('/v1/models', modelsRoute(deps));

  const app = new Koa<RequestState>();
  app
    .use(requestId)
    .use(accessLog(telemetry))
    .use(errorEnvelope(telemetry))
    .use(overload(load))
    .use(hostCheck(deps.hosts))
    .use(clientAddress(deps.trustedProxies))
    .use(router.routes())
    .use(methodNotAllowed(router));
  app.on('error', (error) => telemetry.failure('', error));
  return app;
}
