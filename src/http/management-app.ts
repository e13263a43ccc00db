import type Koa from 'koa';
import { authenticateMaster, type LimitRateDeps, limitAddress } from './authenticate.ts';
import { jsonBody } from './body.ts';
import { keyHandlers, masterKeyHandlers, platformKeyHandlers } from './master/key-routes.ts';
import { auditHandlers, logHandlers, usageHandlers } from './master/log-routes.ts';
import type { MasterDeps } from './master/master-route.ts';
import { policyFolderHandlers, policyHandlers, policyReplayHandlers } from './master/policy-routes.ts';
import {
  aliasHandlers,
  customModelHandlers,
  customProviderHandlers,
  providerKeyHandlers,
} from './master/provider-routes.ts';
import { groupHandlers, ruleHandlers, tagSetHandlers } from './master/rule-routes.ts';
import {
  budgetHandlers,
  invitationHandlers,
  memberHandlers,
  organizationHandlers,
  projectHandlers,
} from './master/tenant-routes.ts';
import { metricsHandlers } from './operational.ts';
import { management } from './operations/management-operations.ts';
import type { Operation } from './operations/operation.ts';
import { createPages } from './pages/pages.ts';
import { type AppDeps, createApp } from './pipeline.ts';
import { knownQuery } from './query.ts';
import { register } from './routes.ts';
import { signInRoutes } from './sign-in/sign-in-routes.ts';
import type { AppMiddleware, RequestState } from './state.ts';

export interface ManagementDeps extends AppDeps, MasterDeps, LimitRateDeps {
  /** With which metrics can be read from elsewhere than this machine. */
  metricsToken: () => string | undefined;
}

/** Bytes that a caller without a key may send. */
const SMALL_BODY = 4096;

/** Steps of a master API request before its handler: the check of its key, of its query and of its body. */
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
