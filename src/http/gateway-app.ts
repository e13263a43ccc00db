import type Koa from 'koa';
import type { Authenticate } from '../core/authenticate.ts';
import type { CompleteChat } from '../core/complete-chat.ts';
import type { ListModels } from '../core/list-models.ts';
import { type AppDeps, createApp } from './app.ts';
import { authenticate } from './middleware/authenticate.ts';
import { jsonBody } from './middleware/json-body.ts';
import { chatCompletionsRoute } from './routes/chat-completions.ts';
import { modelsRoute } from './routes/models.ts';
import type { RequestState } from './state.ts';

export interface GatewayDeps extends AppDeps {
  authenticate: Authenticate;
  completeChat: CompleteChat;
  listModels: ListModels;
  keepAliveMs: number;
}

/** The public gateway: one line for each route. */
export const createGatewayApp = (deps: GatewayDeps): Koa<RequestState> =>
  createApp(deps, (router) => {
    const authenticated = authenticate(deps.authenticate);
    router.post(
      '/v1/chat/completions',
      authenticated,
      jsonBody(deps.load, deps.bodyLimits),
      chatCompletionsRoute(deps),
    );
    router.get('/v1/models', modelsRoute(deps));
  });
