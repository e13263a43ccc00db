import type Koa from 'koa';
import { type AppDeps, createApp } from './app.ts';
import { authenticateMaster, limitAddress } from './middleware/authenticate-master.ts';
import { jsonBody } from './middleware/json-body.ts';
import { knownQuery } from './middleware/known-query.ts';
import type { LimitRateDeps } from './middleware/rate-limit.ts';
import { management } from './operations/management.ts';
import type { Operation } from './operations/operation.ts';
import { createPages } from './pages/pages.ts';
import { register } from './register.ts';
import { aliasHandlers } from './routes/master/aliases.ts';
import { auditHandlers } from './routes/master/audit.ts';
import { budgetHandlers } from './routes/master/budgets.ts';
import { customModelHandlers } from './routes/master/custom-models.ts';
import { customProviderHandlers } from './routes/master/custom-providers.ts';
import { groupHandlers } from './routes/master/groups.ts';
import { ruleHandlers } from './routes/master/iam-rules.ts';
import { invitationHandlers } from './routes/master/invitations.ts';
import { keyHandlers } from './routes/master/keys.ts';
import { logHandlers } from './routes/master/log.ts';
import { masterKeyHandlers } from './routes/master/master-keys.ts';
import type { MasterDeps } from './routes/master/master-route.ts';
import { memberHandlers } from './routes/master/members.ts';
import { organizationHandlers } from './routes/master/organization.ts';
import { platformKeyHandlers } from './routes/master/platform-keys.ts';
import { policyHandlers } from './routes/master/policy.ts';
import { policyFolderHandlers } from './routes/master/policy-folder.ts';
import { policyReplayHandlers } from './routes/master/policy-replay.ts';
import { projectHandlers } from './routes/master/projects.ts';
import { providerKeyHandlers } from './routes/master/provider-keys.ts';
import { tagSetHandlers } from './routes/master/tag-sets.ts';
import { usageHandlers } from './routes/master/usage.ts';
import { metricsHandlers } from './routes/metrics.ts';
import { signInRoutes } from './routes/sign-in/sign-in-routes.ts';
import type { AppMiddleware, RequestState } from './state.ts';

export interface ManagementDeps extends AppDeps, MasterDeps, LimitRateDeps {
  /** With which metrics can be read from elsewhere than this machine. */
  metricsToken: () => string | undefined;
}

/** Bytes that a caller without a key may send. */
const SMALL_BODY = 4096;

/** What a request of the master API goes through before its handler: the check of its key, of its query and of its body. */
function masterSteps(deps: ManagementDeps): (operation: Operation) => readonly AppMiddleware[] {
  const { bodyLimits, telemetry } = deps;
  const authenticated = authenticateMaster(deps);
  const byAddress = limitAddress(deps);
  const body = jsonBody(bodyLimits, telemetry);
  const smallBody = jsonBody({ ...bodyLimits, bytes: Math.min(SMALL_BODY, bodyLimits.bytes) }, telemetry);
  return ({ key, query, querySchema, request }) => {
    if (key === 'metrics') return [];
    const hasKey = key === 'master';
    return [
      hasKey ? authenticated : byAddress,
      knownQuery(Object.keys(query ?? querySchema?.properties ?? {})),
      ...(request === undefined ? [] : [hasKey ? body : smallBody]),
    ];
  };
}

/** The management host: the master API. */
export const createManagementApp = (deps: ManagementDeps): Koa<RequestState> =>
  createApp('management', deps, (busy, others) => {
    const handlers = {
      ...keyHandlers(deps),
      ...ruleHandlers(deps),
      ...groupHandlers(deps),
      ...budgetHandlers(deps),
      ...organizationHandlers(deps),
      ...projectHandlers(deps),
      ...memberHandlers(deps),
      ...invitationHandlers(deps),
      ...masterKeyHandlers(deps),
      ...platformKeyHandlers(deps),
      ...providerKeyHandlers(deps),
      ...customProviderHandlers(deps),
      ...customModelHandlers(deps),
      ...tagSetHandlers(deps),
      ...aliasHandlers(deps),
      ...policyHandlers(deps),
      ...policyFolderHandlers(deps),
      ...policyReplayHandlers(deps),
      ...auditHandlers(deps),
      ...usageHandlers(deps),
      ...logHandlers(deps),
      ...metricsHandlers({ exposition: deps.telemetry.exposition, metricsToken: deps.metricsToken }),
    };
    register(busy, management.operations, handlers, masterSteps(deps));
    // `PUBLIC_URL` is the gateway's.
    signInRoutes(createPages(others, { ...deps, publicUrl: undefined }), { ...deps, hasApplications: false });
  });
