import type Koa from 'koa';
import type { Authenticate } from '../core/access/authenticate.ts';
import type { CompleteChatDeps } from '../core/chat/complete-chat.ts';
import type { GenerateImageDeps } from '../core/images/generate-image.ts';
import type { ListModels } from '../core/models/list-models.ts';
import type { ModerateDeps } from '../core/moderations/moderate.ts';
import type { MetadataForm } from './answer/metadata-form.ts';
import { type AppDeps, createApp } from './app.ts';
import { authenticate } from './middleware/authenticate.ts';
import { jsonBody } from './middleware/json-body.ts';
import { limitRate, rateLimit } from './middleware/rate-limit.ts';
import { createPages, type PagesDeps } from './pages/pages.ts';
import { chatCompletionsRoute } from './routes/chat-completions.ts';
import { descriptionRoutes } from './routes/description.ts';
import { imagesRoute } from './routes/images.ts';
import { type McpRouteDeps, mcpRoutes } from './routes/mcp.ts';
import { modelsRoutes } from './routes/models.ts';
import { moderationsRoute } from './routes/moderations.ts';
import { applicationsRoutes } from './routes/oauth/applications.ts';
import { consentRoutes } from './routes/oauth/consent.ts';
import { type OAuthDeps, oauthEndpoints } from './routes/oauth/endpoints.ts';
import { signInRoutes } from './routes/sign-in/sign-in-routes.ts';
import type { RequestState } from './state.ts';

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

/** The public gateway: one line for each route. */
export const createGatewayApp = (deps: GatewayDeps): Koa<RequestState> =>
  createApp(deps, (router) => {
    descriptionRoutes(router, 'gateway');
    const authenticated = authenticate(deps.authenticate);
    const body = jsonBody(deps.bodyLimits, deps.telemetry);
    router.post('/v1/chat/completions', authenticated, rateLimit(deps, 'chat'), body, chatCompletionsRoute(deps));
    router.post('/v1/images/generations', authenticated, rateLimit(deps, 'images'), body, imagesRoute(deps));
    router.post('/v1/moderations', authenticated, rateLimit(deps, 'moderations'), body, moderationsRoute(deps));
    mcpRoutes(router, deps);
    const pages = createPages(router, { ...deps, publicUrl: deps.hosts.publicUrl });
    signInRoutes(pages, { ...deps, hasApplications: true });
    consentRoutes(pages, deps);
    applicationsRoutes(pages, deps);
    oauthEndpoints(router, deps);
    modelsRoutes(router, { ...deps, limited: limitRate(deps, 'models') });
  });
