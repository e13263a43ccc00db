import { readEvidenceRequest } from '../../admin/log/log-reader.ts';
import { changeTagSet, createTagSet, deleteTagSet, getTagSet, listTagSets } from '../../admin/providers/tag-sets.ts';
import {
  changeGroup,
  createGroup,
  deleteGroup,
  type GroupPlan,
  getGroup,
  listGroups,
  readGroupDeletion,
  readGroupPlan,
} from '../../admin/rules/groups.ts';
import {
  changeRule,
  createRule,
  deleteRule,
  getRule,
  listRules,
  readRuleCreation,
  readRuleDeletion,
  readRulePlan,
} from '../../admin/rules/iam-rules.ts';
import { changeJudged, type RulePlan } from '../../admin/rules/judged-change.ts';
import type { RuleOwner } from '../../admin/rules/rule-owner.ts';
import type { ManagementContext } from '../app-context.ts';
import { actorOf } from '../authenticate.ts';
import type { ManagementId } from '../operations/management-operations.ts';
import { flag, pageRequest } from '../query.ts';
import type { Handlers } from '../routes.ts';
import type { AppMiddleware, RequestContext } from '../state.ts';
import { answer, answerChange, answerWritten, pathParameter, wideningIn } from './master-route.ts';

/** `…/iam` and `…/iam/{ruleId}` of a key, a member (membership id or e-mail), a group and the organization. */
export function ruleHandlers(app: ManagementContext) {
  const ofKey = routesOf(app, (ctx) => ({ kind: 'key', key: pathParameter(ctx, 'id') }));
  const ofMember = routesOf(app, (ctx) => ({ kind: 'member', member: pathParameter(ctx, 'member') }));
  const ofGroup = routesOf(app, (ctx) => ({ kind: 'group', group: pathParameter(ctx, 'id') }));
  const ofOrganization = routesOf(app, () => ({ kind: 'organization' }));
  return {
    listKeyRules: ofKey.list,
    createKeyRule: ofKey.create,
    getKeyRule: ofKey.get,
    changeKeyRule: ofKey.change,
    deleteKeyRule: ofKey.delete,
    getKeyRuleEvidence: ofKey.evidence,
    listMemberRules: ofMember.list,
    createMemberRule: ofMember.create,
    getMemberRule: ofMember.get,
    changeMemberRule: ofMember.change,
    deleteMemberRule: ofMember.delete,
    getMemberRuleEvidence: ofMember.evidence,
    listGroupRules: ofGroup.list,
    createGroupRule: ofGroup.create,
    getGroupRule: ofGroup.get,
    changeGroupRule: ofGroup.change,
    deleteGroupRule: ofGroup.delete,
    getGroupRuleEvidence: ofGroup.evidence,
    listOrganizationRules: ofOrganization.list,
    createOrganizationRule: ofOrganization.create,
    getOrganizationRule: ofOrganization.get,
    changeOrganizationRule: ofOrganization.change,
    deleteOrganizationRule: ofOrganization.delete,
    getOrganizationRuleEvidence: ofOrganization.evidence,
  } satisfies Partial<Handlers<ManagementId>>;
}

function routesOf(
  { store, catalog, trustedProxies, analyst, logReader }: ManagementContext,
  ownerOf: (ctx: RequestContext) => RuleOwner,
) {
  const world = { catalog, trustedProxies };
  const judgeFor =
    (organizationId: string) =>
    ({ subject, ruleId, rule }: RulePlan) =>
      analyst.analyse({ kind: 'widening', organizationId, subject, ruleId, rule }).then(wideningIn);
  return {
    list: async (ctx) => {
      const page = pageRequest(ctx);
      answer(ctx, await store.read((db) => listRules(db, actorOf(ctx), ownerOf(ctx), page)));
    },
    create: async (ctx) => {
      const [actor, owner, { body }] = [actorOf(ctx), ownerOf(ctx), ctx.state];
      const made = await changeJudged({
        plan: () => store.read((db) => readRuleCreation(db, actor, owner, body)),
        judge: judgeFor(actor.organizationId),
        write: (judged) => store.write((db, now) => createRule(db, actor, owner, body, { now, ...world }, judged)),
      });
      answer(ctx, made, 201);
    },
    get: async (ctx) => {
      const id = pathParameter(ctx, 'ruleId');
      answer(ctx, await store.read((db) => getRule(db, actorOf(ctx), ownerOf(ctx), id, world)));
    },
    change: async (ctx) => {
      const id = pathParameter(ctx, 'ruleId');
      const [actor, owner, { body }] = [actorOf(ctx), ownerOf(ctx), ctx.state];
      const changed = await changeJudged({
        plan: () => store.read((db) => readRulePlan(db, actor, owner, id, body)),
        judge: judgeFor(actor.organizationId),
        write: (judged) => store.write((db, now) => changeRule(db, actor, owner, id, body, { now, ...world }, judged)),
      });
      answer(ctx, changed);
    },
    delete: async (ctx) => {
      const [id, mustNotWiden] = [pathParameter(ctx, 'ruleId'), flag(ctx, 'failOnNewAccess')];
      const [actor, owner] = [actorOf(ctx), ownerOf(ctx)];
      const deleted = await changeJudged({
        plan: () => store.read((db) => readRuleDeletion(db, actor, owner, id, mustNotWiden)),
        judge: judgeFor(actor.organizationId),
        write: (judged) => store.write((db, now) => deleteRule(db, actor, owner, id, mustNotWiden, now, judged)),
      });
      answer(ctx, deleted);
    },
    evidence: async (ctx) => {
      const [actor, id, page] = [actorOf(ctx), pathParameter(ctx, 'ruleId'), pageRequest(ctx)];
      const request = await store.read((db) => readEvidenceRequest(db, actor, ownerOf(ctx), id, page));
      answerWritten(ctx, await logReader.read(actor.organizationId, { what: 'evidence', request }));
    },
  } satisfies Record<string, AppMiddleware>;
}

/** `/v1/master/groups` and `/v1/master/groups/{id}`. */
export function groupHandlers({ store, analyst }: ManagementContext) {
  const judgeFor =
    (organizationId: string) =>
    ({ groupId, holderIds }: GroupPlan) =>
      analyst.analyse({ kind: 'regrouping', organizationId, groupId, holderIds }).then(wideningIn);

  return {
    listGroups: async (ctx) => {
      const page = pageRequest(ctx);
      answer(ctx, await store.read((db) => listGroups(db, actorOf(ctx), page)));
    },
    createGroup: async (ctx) => {
      answer(ctx, await store.write((db, now) => createGroup(db, actorOf(ctx), ctx.state.body, now)), 201);
    },
    getGroup: async (ctx) => {
      answer(ctx, await store.read((db) => getGroup(db, actorOf(ctx), pathParameter(ctx, 'id'))));
    },
    changeGroup: async (ctx) => {
      const [actor, id, { body }] = [actorOf(ctx), pathParameter(ctx, 'id'), ctx.state];
      const changed = await changeJudged({
        plan: () => store.read((db) => readGroupPlan(db, actor, id, body)),
        judge: judgeFor(actor.organizationId),
        write: (judged) => store.write((db, now) => changeGroup(db, actor, id, body, now, judged)),
      });
      answer(ctx, changed);
    },
    deleteGroup: async (ctx) => {
      const [actor, id, mustNotWiden] = [actorOf(ctx), pathParameter(ctx, 'id'), flag(ctx, 'failOnNewAccess')];
      const deleted = await changeJudged({
        plan: () => store.read((db) => readGroupDeletion(db, actor, id, mustNotWiden)),
        judge: judgeFor(actor.organizationId),
        write: (judged) => store.write((db, now) => deleteGroup(db, actor, id, mustNotWiden, now, judged)),
      });
      answer(ctx, deleted);
    },
  } satisfies Partial<Handlers<ManagementId>>;
}

/** `/v1/master/tag-sets` and `/v1/master/tag-sets/{id}`. */
export function tagSetHandlers(app: ManagementContext) {
  const { store, catalog } = app;
  return {
    listTagSets: async (ctx) => {
      const request = pageRequest(ctx);
      answer(ctx, await store.read((db) => listTagSets(db, actorOf(ctx), request)));
    },
    createTagSet: async (ctx) => {
      const [actor, { body }] = [actorOf(ctx), ctx.state];
      await answerChange(app, ctx, (db, now) => createTagSet(db, actor, body, { now, catalog }), { status: 201 });
    },
    getTagSet: async (ctx) => {
      answer(ctx, await store.read((db) => getTagSet(db, actorOf(ctx), pathParameter(ctx, 'id'))));
    },
    changeTagSet: async (ctx) => {
      const [actor, id, { body }] = [actorOf(ctx), pathParameter(ctx, 'id'), ctx.state];
      await answerChange(app, ctx, (db, now) => changeTagSet(db, actor, id, body, { now, catalog }));
    },
    deleteTagSet: async (ctx) => {
      const [actor, id] = [actorOf(ctx), pathParameter(ctx, 'id')];
      await answerChange(app, ctx, (db, now) => deleteTagSet(db, actor, id, now));
    },
  } satisfies Partial<Handlers<ManagementId>>;
}
