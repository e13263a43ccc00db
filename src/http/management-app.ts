import type Koa from 'koa';
import { type AppDeps, createApp } from './app.ts';
import { authenticateMaster, limitAddress } from './middleware/authenticate-master.ts';
import { jsonBody } from './middleware/json-body.ts';
import { knownQuery } from './middleware/known-query.ts';
import type { LimitRateDeps } from './middleware/rate-limit.ts';
import { createPages } from './pages/pages.ts';
import { descriptionRoutes } from './routes/description.ts';
import { auditRoutes } from './routes/master/audit.ts';
import { budgetRoutes } from './routes/master/budgets.ts';
import { customModelRoutes } from './routes/master/custom-models.ts';
import { customProviderRoutes } from './routes/master/custom-providers.ts';
import { ruleRoutes } from './routes/master/iam-rules.ts';
import { invitationRoutes } from './routes/master/invitations.ts';
import { keyRoutes } from './routes/master/keys.ts';
import { masterKeyRoutes } from './routes/master/master-keys.ts';
import type { MasterDeps } from './routes/master/master-route.ts';
import { memberRoutes } from './routes/master/members.ts';
import { organizationRoutes } from './routes/master/organization.ts';
import { platformKeyRoutes } from './routes/master/platform-keys.ts';
import { policyRoutes } from './routes/master/policy.ts';
import { projectRoutes } from './routes/master/projects.ts';
import { providerKeyRoutes } from './routes/master/provider-keys.ts';
import { usageRoutes } from './routes/master/usage.ts';
import { metricsRoute } from './routes/metrics.ts';
import { signInRoutes } from './routes/sign-in/sign-in-routes.ts';
import type { AppMiddleware, RequestState } from './state.ts';

export interface ManagementDeps extends AppDeps, MasterDeps, LimitRateDeps {
  /** With which metrics can be read from elsewhere than this machine. */
  metricsToken: string | undefined;
}

const inOrder =
  (first: AppMiddleware, second: AppMiddleware): AppMiddleware =>
  (ctx, next) =>
    first(ctx, async () => second(ctx, next));

/** Bytes that a caller without a key may send. */
const SMALL_BODY = 4096;

/** The management host: the master API. */
export const createManagementApp = (deps: ManagementDeps): Koa<RequestState> =>
  createApp(deps, (router) => {
    descriptionRoutes(router, 'management');
    const master = {
      router,
      deps,
      authenticated: inOrder(authenticateMaster(deps), knownQuery),
      byAddress: inOrder(limitAddress(deps), knownQuery),
      jsonBody: jsonBody(deps.bodyLimits, deps.telemetry),
      smallBody: jsonBody({ ...deps.bodyLimits, bytes: Math.min(SMALL_BODY, deps.bodyLimits.bytes) }, deps.telemetry),
    };
    keyRoutes(master);
    ruleRoutes(master);
    budgetRoutes(master);
    organizationRoutes(master);
    projectRoutes(master);
    memberRoutes(master);
    invitationRoutes(master);
    masterKeyRoutes(master);
    platformKeyRoutes(master);
    providerKeyRoutes(master);
    customProviderRoutes(master);
    customModelRoutes(master);
    policyRoutes(master);
    auditRoutes(master);
    metricsRoute(router, { exposition: deps.telemetry.exposition, metricsToken: deps.metricsToken });
    usageRoutes(master);
    // `PUBLIC_URL` is the gateway's.
    signInRoutes(createPages(router, { ...deps, publicUrl: undefined }), { ...deps, hasApplications: false });
  });
