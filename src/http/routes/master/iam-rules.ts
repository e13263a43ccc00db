import {
  changeRule,
  createRule,
  deleteRule,
  getRule,
  listRules,
  readRulePlan,
} from '../../../admin/rules/iam-rules.ts';
import { changeJudged } from '../../../admin/rules/judged-change.ts';
import type { RuleOwner } from '../../../admin/rules/rule-owner.ts';
import type { RuleWidening } from '../../../generated/types.ts';
import { validateRuleWidening } from '../../../generated/validators.js';
import type { Analysis } from '../../../workbench/analysis/analysis-job.ts';
import { actorOf } from '../../middleware/authenticate-master.ts';
import type { AppContext } from '../../state.ts';
import { answer, type MasterRouter, pathParameter } from './master-route.ts';
import { pageRequest } from './page-request.ts';

/** `…/iam` and `…/iam/{ruleId}` of a key, a member (membership id or e-mail) and the organization. */
export function ruleRoutes(master: MasterRouter): void {
  rulesOf(master, '/v1/master/keys/:id/iam', (ctx) => ({ kind: 'key', key: pathParameter(ctx, 'id') }));
  rulesOf(master, '/v1/master/members/:member/iam', (ctx) => ({
    kind: 'member',
    member: pathParameter(ctx, 'member'),
  }));
  rulesOf(master, '/v1/master/organization/iam', () => ({ kind: 'organization' }));
}

function rulesOf(master: MasterRouter, path: string, ownerOf: (ctx: AppContext) => RuleOwner): void {
  const { router, deps, authenticated, jsonBody } = master;
  const { store, catalog, trustedProxies, analyst } = deps;
  const world = { catalog, trustedProxies };

  router.get(path, authenticated, async (ctx) => {
    const page = pageRequest(ctx);
    answer(ctx, await store.read((db) => listRules(db, actorOf(ctx), ownerOf(ctx), page)));
  });
  router.post(path, authenticated, jsonBody, async (ctx) => {
    const made = await store.write((db, now) =>
      createRule(db, actorOf(ctx), ownerOf(ctx), ctx.state.body, { now, ...world }),
    );
    answer(ctx, made, 201);
  });
  router.get(`${path}/:ruleId`, authenticated, async (ctx) => {
    const id = pathParameter(ctx, 'ruleId');
    answer(ctx, await store.read((db) => getRule(db, actorOf(ctx), ownerOf(ctx), id, world)));
  });
  router.patch(`${path}/:ruleId`, authenticated, jsonBody, async (ctx) => {
    const id = pathParameter(ctx, 'ruleId');
    const [actor, owner, { body }] = [actorOf(ctx), ownerOf(ctx), ctx.state];
    const changed = await changeJudged({
      plan: () => store.read((db) => readRulePlan(db, actor, owner, id, body)),
      judge: ({ subject, ruleId, rule }) =>
        analyst
          .analyse({ kind: 'widening', organizationId: actor.organizationId, subject, ruleId, rule })
          .then(wideningIn),
      write: (judged) => store.write((db, now) => changeRule(db, actor, owner, id, body, { now, ...world }, judged)),
    });
    answer(ctx, changed);
  });
  router.delete(`${path}/:ruleId`, authenticated, async (ctx) => {
    const id = pathParameter(ctx, 'ruleId');
    answer(ctx, await store.write((db, now) => deleteRule(db, actorOf(ctx), ownerOf(ctx), id, now)));
  });
}

/** The answer of the analyst, which comes as bytes. */
function wideningIn({ json }: Analysis): RuleWidening {
  const widening: unknown = JSON.parse(new TextDecoder().decode(json));
  if (!validateRuleWidening(widening)) throw new Error('The analyst answered with something else.');
  return widening;
}
