import type Koa from 'koa';
import type { LimitedEndpoint } from '../domain/limits.ts';
import type { AppContext } from './app-context.ts';
import { authenticate, rateLimit } from './authenticate.ts';
import { jsonBody } from './body.ts';
import { chatCompletionsRoute, imagesRoute, modelsHandlers, moderationsRoute } from './inference.ts';
import { mcpHandlers } from './mcp-route.ts';
import { applicationsRoutes } from './oauth/applications-page.ts';
import { consentRoutes } from './oauth/consent-page.ts';
import { oauthEndpoints } from './oauth/oauth-endpoints.ts';
import { gateway } from './operations/gateway-operations.ts';
import { createPages } from './pages/pages.ts';
import { createApp } from './pipeline.ts';
import { register } from './routes.ts';
import { signInRoutes } from './sign-in/sign-in-routes.ts';
import type { AppMiddleware, RequestState } from './state.ts';

/** The public gateway: its operations, and the pages and endpoints of sign-in and OAuth. */
export const createGatewayApp = (app: AppContext): Koa<RequestState> =>
  createApp('gateway', app, app.gateway, (busy, others) => {
    const authenticated = authenticate(app.authenticate);
    const body = jsonBody(app.bodyLimits, app.telemetry);
    const call = (endpoint: LimitedEndpoint, route: AppMiddleware): readonly AppMiddleware[] => [
      authenticated,
      rateLimit(app, endpoint),
      body,
      route,
    ];
    register(busy, gateway.operations, {
      createChatCompletion: call('chat', chatCompletionsRoute(app)),
      createImage: call('images', imagesRoute(app)),
      createModeration: call('moderations', moderationsRoute(app)),
      ...mcpHandlers(app),
      ...modelsHandlers(app),
    });
    const pages = createPages(others, app, app.gateway.hosts.publicUrl);
    signInRoutes(pages, app, { hasApplications: true });
    consentRoutes(pages, app);
    applicationsRoutes(pages, app);
    oauthEndpoints(others, app);
  });
