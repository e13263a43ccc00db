import type Koa from 'koa';
import type { Authenticate } from '../core/caller.ts';
import type { CompleteChatDeps } from '../core/chat.ts';
import type { GenerateImageDeps } from '../core/generate-image.ts';
import type { ListModels } from '../core/list-models.ts';
import type { ModerateDeps } from '../core/moderate.ts';
import type { LimitedEndpoint } from '../domain/limits.ts';
import { authenticate, rateLimit } from './authenticate.ts';
import { jsonBody } from './body.ts';
import { chatCompletionsRoute, imagesRoute, type MetadataForm, modelsHandlers, moderationsRoute } from './inference.ts';
import { type McpRouteDeps, mcpHandlers } from './mcp-route.ts';
import { applicationsRoutes } from './oauth/applications-page.ts';
import { consentRoutes } from './oauth/consent-page.ts';
import { type OAuthDeps, oauthEndpoints } from './oauth/oauth-endpoints.ts';
import { gateway } from './operations/gateway-operations.ts';
import { createPages, type PagesDeps } from './pages/pages.ts';
import { type AppDeps, createApp } from './pipeline.ts';
import { register } from './routes.ts';
import { signInRoutes } from './sign-in/sign-in-routes.ts';
import type { AppMiddleware, RequestState } from './state.ts';

export type GatewayDeps = AppDeps &
  CompleteChatDeps &
  GenerateImageDeps &
  ModerateDeps &
  Omit<PagesDeps, 'publicUrl'> &
  Pick<McpRouteDeps, 'mcp' | 'closing' | 'checkAddress' | 'version' | 'authenticateToken'> &
  Pick<OAuthDeps, 'authorizationServer'> & {
    authenticate: Authenticate;
    listModels: ListModels;
    keepAliveMs: number;
    metadataForm: MetadataForm;
  };

/** The public gateway: its operations, and the pages and endpoints of sign-in and OAuth. */
export const createGatewayApp = (deps: GatewayDeps): Koa<RequestState> =>
  createApp('gateway', deps, (busy, others) => {
    const authenticated = authenticate(deps.authenticate);
    const body = jsonBody(deps.bodyLimits, deps.telemetry);
    const call = (endpoint: LimitedEndpoint, route: AppMiddleware): readonly AppMiddleware[] => [
      authenticated,
      rateLimit(deps, endpoint),
      body,
      route,
    ];
    register(busy, gateway.operations, {
      createChatCompletion: call('chat', chatCompletionsRoute(deps)),
      createImage: call('images', imagesRoute(deps)),
      createModeration: call('moderations', moderationsRoute(deps)),
      ...mcpHandlers(deps),
      ...modelsHandlers(deps),
    });
    const pages = createPages(others, { ...deps, publicUrl: deps.hosts.publicUrl });
    signInRoutes(pages, { ...deps, hasApplications: true });
    consentRoutes(pages, deps);
    applicationsRoutes(pages, deps);
    oauthEndpoints(others, deps);
  });
