import type Koa from 'koa';
import type { ManagementContext } from './app-context.ts';
import { authenticateMaster, limitAddress } from './authenticate.ts';
import { jsonBody } from './body.ts';
import { keyHandlers, masterKeyHandlers, platformKeyHandlers } from './master/key-routes.ts';
import { auditHandlers, logHandlers, usageHandlers } from './master/log-routes.ts';
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
import { createApp } from './pipeline.ts';
import { knownQuery } from './query.ts';
import { register } from './routes.ts';
import { signInRoutes } from './sign-in/sign-in-routes.ts';
import type { AppMiddleware, RequestState } from './state.ts';

/** Bytes that a caller without a key may send. */
const SMALL_BODY = 4096;

/** Steps of a master API request before its handler: the check of its key, of its query and of its body. */
function masterSteps(app: ManagementContext): (operation: Operation) => readonly AppMiddleware[] {
  const { bodyLimits, telemetry } = app;
  const authenticated = authenticateMaster(app);
  const byAddress = limitAddress(app);
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
export const createManagementApp = (app: ManagementContext): Koa<RequestState> =>
  createApp('management', app, app.management, (busy, others) => {
    const handlers = {
      ...keyHandlers(app),
      ...ruleHandlers(app),
      ...groupHandlers(app),
      ...budgetHandlers(app),
      ...organizationHandlers(app),
      ...projectHandlers(app),
      ...memberHandlers(app),
      ...invitationHandlers(app),
      ...masterKeyHandlers(app),
      ...platformKeyHandlers(app),
      ...providerKeyHandlers(app),
      ...customProviderHandlers(app),
      ...customModelHandlers(app),
      ...tagSetHandlers(app),
      ...aliasHandlers(app),
      ...policyHandlers(app),
      ...policyFolderHandlers(app),
      ...policyReplayHandlers(app),
      ...auditHandlers(app),
      ...usageHandlers(app),
      ...logHandlers(app),
      ...metricsHandlers(app),
    };
    register(busy, management.operations, handlers, masterSteps(app));
    // `PUBLIC_URL` is the gateway's.
    signInRoutes(createPages(others, app, undefined), app, { hasApplications: false });
  });
