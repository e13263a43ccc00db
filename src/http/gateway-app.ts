import type Koa from 'koa';
import type { Authenticate } from '../core/access/authenticate.ts';
import type { CompleteChatDeps } from '../core/chat/complete-chat.ts';
import type { GenerateImageDeps } from '../core/images/generate-image.ts';
import type { ListModels } from '../core/models/list-models.ts';
import type { ModerateDeps } from '../core/moderations/moderate.ts';
import type { LimitedEndpoint } from '../domain/rate-limits.ts';
import type { MetadataForm } from './answer/metadata-form.ts';
import { type AppDeps, createApp } from './app.ts';
import { authenticate } from './middleware/authenticate.ts';
import { jsonBody } from './middleware/json-body.ts';
import { rateLimit } from './middleware/rate-limit.ts';
import { gateway } from './operations/gateway.ts';
import { createPages, type PagesDeps } from './pages/pages.ts';
import { register } from './register.ts';
import { chatCompletionsRoute } from './routes/chat-completions.ts';
import { imagesRoute } from './routes/images.ts';
import { type McpRouteDeps, mcpHandlers } from './routes/mcp.ts';
import { modelsHandlers } from './routes/models.ts';
import { moderationsRoute } from './routes/moderations.ts';
import { applicationsRoutes } from './routes/oauth/applications.ts';
import { consentRoutes } from './routes/oauth/consent.ts';
import { type OAuthDeps, oauthEndpoints } from './routes/oauth/endpoints.ts';
import { signInRoutes } from './routes/sign-in/sign-in-routes.ts';
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
