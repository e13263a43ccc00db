import { checkManagesOrganization } from '../../../admin/audit/actor.ts';
import { getKey } from '../../../admin/keys/keys.ts';
import { checkShape } from '../../../domain/check-shape.ts';
import { formatTime } from '../../../domain/time.ts';
import type { DraftRule, PolicyBundleAnswer } from '../../../generated/types.ts';
import { validateDraftRules, validateEvaluateRequest } from '../../../generated/validators.js';
import { actorOf } from '../../middleware/authenticate-master.ts';
import type { ManagementId } from '../../operations/management.ts';
import type { Handlers } from '../../register.ts';
import { flag } from '../../request/query-parameter.ts';
import type { AppContext } from '../../state.ts';
import { answer, answerAnalysis, type MasterDeps, pathParameter } from './master-route.ts';

/** `…/keys/{id}/access` and `…/policy/…`: what the rules, stored or drafted, mean. */
export function policyHandlers(deps: MasterDeps) {
  const { store, clock, analyst } = deps;
  const checkSees = (ctx: AppContext, keyId: string) =>
    store.read((db) => getKey(db, actorOf(ctx), keyId, clock.now()));

  return {
    getKeyAccess: async (ctx) => {
      const { organizationId } = actorOf(ctx);
      const keyId = pathParameter(ctx, 'id');
      await checkSees(ctx, keyId);
      answerAnalysis(ctx, await analyst.analyse({ kind: 'access', organizationId, keyId, ...shown(ctx) }));
    },
    evaluatePolicy: async (ctx) => {
      const { organizationId } = actorOf(ctx);
      const body = checkShape(validateEvaluateRequest, ctx.state.body);
      if (body.key === undefined || (body.rules ?? []).some(concernsOthers)) checkManagesOrganization(actorOf(ctx));
      if (body.key !== undefined) await checkSees(ctx, body.key);
      answerAnalysis(ctx, await analyst.analyse({ kind: 'evaluate', organizationId, body }));
    },
    diffPolicy: async (ctx) => {
      const { organizationId } = actorOf(ctx);
      const { rules } = checkShape(validateDraftRules, ctx.state.body);
      checkManagesOrganization(actorOf(ctx));
      answerAnalysis(ctx, await analyst.analyse({ kind: 'diff', organizationId, rules, ...shown(ctx) }));
    },
    getPolicyBundle: async (ctx) => {
      checkManagesOrganization(actorOf(ctx));
      const { digest, revision = null, source, activatedAt, checkedAt, refusal } = deps.policyStatus();
      const body: PolicyBundleAnswer = {
        policy: {
          digest,
          revision,
          origin: source === undefined ? 'installation' : 'bundle',
          activatedAt: formatTime(activatedAt),
          checkedAt: checkedAt === undefined ? null : formatTime(checkedAt),
          refusal: refusal === undefined ? null : { code: refusal.code, at: formatTime(refusal.at) },
        },
        // Where the operator keeps bundles is no business of an organization's.
        history: deps.policyHistory().map(({ source: _, ...offer }) => offer),
      };
      answer(ctx, body);
    },
  } satisfies Partial<Handlers<ManagementId>>;
}

/** Whether what cannot be called for lack of a credential is in the answer too. @throws ApiError 400 */
const shown = (ctx: AppContext) => ({ withoutCredential: flag(ctx, 'withoutCredential') });

/** A draft that is not a new rule of the key that is asked about: developers have no business with it. */
const concernsOthers = ({ id, key, member, group, organization }: DraftRule): boolean =>
  [id, key, member, group, organization].some((owner) => owner !== undefined);
