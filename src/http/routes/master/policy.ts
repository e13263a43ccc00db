import { checkManagesOrganization } from '../../../admin/audit/actor.ts';
import { getKey } from '../../../admin/keys/keys.ts';
import { checkShape } from '../../../domain/check-shape.ts';
import type { DraftRule } from '../../../generated/types.ts';
import { validateDraftRules, validateEvaluateRequest } from '../../../generated/validators.js';
import type { Analysis } from '../../../workbench/analysis/analysis-job.ts';
import { actorOf } from '../../middleware/authenticate-master.ts';
import type { ManagementId } from '../../operations/management.ts';
import type { Handlers } from '../../register.ts';
import { flag } from '../../request/query-parameter.ts';
import type { AppContext } from '../../state.ts';
import { type MasterDeps, pathParameter } from './master-route.ts';

/** `…/keys/{id}/access`, `…/policy/evaluate` and `…/policy/diff`: what the rules, stored or drafted, mean. */
export function policyHandlers(deps: MasterDeps) {
  const { store, clock, analyst } = deps;
  const checkSees = (ctx: AppContext, keyId: string) =>
    store.read((db) => getKey(db, actorOf(ctx), keyId, clock.now()));

  return {
    getKeyAccess: async (ctx) => {
      const { organizationId } = actorOf(ctx);
      const keyId = pathParameter(ctx, 'id');
      await checkSees(ctx, keyId);
      send(ctx, await analyst.analyse({ kind: 'access', organizationId, keyId, ...shown(ctx) }));
    },
    evaluatePolicy: async (ctx) => {
      const { organizationId } = actorOf(ctx);
      const body = checkShape(validateEvaluateRequest, ctx.state.body);
      if (body.key === undefined || (body.rules ?? []).some(concernsOthers)) checkManagesOrganization(actorOf(ctx));
      if (body.key !== undefined) await checkSees(ctx, body.key);
      send(ctx, await analyst.analyse({ kind: 'evaluate', organizationId, body }));
    },
    diffPolicy: async (ctx) => {
      const { organizationId } = actorOf(ctx);
      const { rules } = checkShape(validateDraftRules, ctx.state.body);
      checkManagesOrganization(actorOf(ctx));
      send(ctx, await analyst.analyse({ kind: 'diff', organizationId, rules, ...shown(ctx) }));
    },
  } satisfies Partial<Handlers<ManagementId>>;
}

/** Whether what cannot be called for lack of a credential is in the answer too. @throws ApiError 400 */
const shown = (ctx: AppContext) => ({ withoutCredential: flag(ctx, 'withoutCredential') });

/** A draft that is not a new rule of the key that is asked about: developers have no business with it. */
const concernsOthers = ({ id, key, member, group, organization }: DraftRule): boolean =>
  [id, key, member, group, organization].some((owner) => owner !== undefined);

function send(ctx: AppContext, { json, policyRevision }: Analysis): void {
  ctx.set('cache-control', 'no-store');
  ctx.set('x-policy-revision', policyRevision);
  ctx.type = 'application/json';
  ctx.body = Buffer.from(json.buffer, json.byteOffset, json.byteLength);
}
