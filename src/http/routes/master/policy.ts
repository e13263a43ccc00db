import { checkManagesOrganization } from '../../../admin/audit/actor.ts';
import { getKey } from '../../../admin/keys/keys.ts';
import { readRangeFilter } from '../../../admin/log/log-query.ts';
import { checkShape } from '../../../domain/check-shape.ts';
import { invalidRequest } from '../../../domain/errors.ts';
import { formatTime } from '../../../domain/time.ts';
import type { DraftRule, PolicyBundleAnswer } from '../../../generated/types.ts';
import { validateDraftRules, validateEvaluateRequest, validateReplayRequest } from '../../../generated/validators.js';
import type { Analysis } from '../../../workbench/analysis/analysis-job.ts';
import { streamReplay } from '../../../workbench/analysis/stream-replay.ts';
import { REPLAY_DIMENSIONS } from '../../../workbench/replay/replay.ts';
import { sendFormed } from '../../answer/send-events.ts';
import { actorOf } from '../../middleware/authenticate-master.ts';
import type { ManagementId } from '../../operations/management.ts';
import type { Handlers } from '../../register.ts';
import { flag } from '../../request/query-parameter.ts';
import type { AppContext } from '../../state.ts';
import { answer, type MasterDeps, pathParameter } from './master-route.ts';

/** Decisions that are replayed for one request. */
const MOST_REPLAYED = 100_000;

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
    replayPolicy: async (ctx) => {
      const actor = actorOf(ctx);
      const asked = checkShape(validateReplayRequest, ctx.state.body);
      const { rules = [], recorded: isRecorded = false, groupBy = REPLAY_DIMENSIONS, stream = false, ...query } = asked;
      if (rules.length > 0) checkManagesOrganization(actor);
      if (rules.length > 0 && isRecorded) throw invalidRequest('/rules are not judged with /recorded.', '/rules');
      const filter = await store.read((db) => readRangeFilter(db, actor, query, clock.now()));
      const { organizationId } = actor;
      const scope = { filter, groupBy, most: MOST_REPLAYED };
      const events = streamReplay(
        analyst,
        { kind: 'replay', organizationId, isRecorded, rules, ...scope },
        ctx.state.signal,
      );
      if (!stream) {
        for await (const event of events) if ('json' in event) send(ctx, event);
        return;
      }
      await sendFormed(deps, ctx, events, {
        nameOf: (event) => ('json' in event ? 'report' : 'progress'),
        formed: (event) => ('json' in event ? [event.json] : event),
      });
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

function send(ctx: AppContext, { json, policyRevision }: Analysis): void {
  ctx.set('cache-control', 'no-store');
  ctx.set('x-policy-revision', policyRevision);
  ctx.type = 'application/json';
  ctx.body = Buffer.from(json.buffer, json.byteOffset, json.byteLength);
}
