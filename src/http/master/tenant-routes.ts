import { acceptInvitation } from '../../admin/sign-in/accept-invitation.ts';
import { type BudgetOwner, changeBudget, getBudget, listBudgets } from '../../admin/tenants/budgets.ts';
import { createInvitation, getInvitation, listInvitations, revokeInvitation } from '../../admin/tenants/invitations.ts';
import { changeMember, getMember, listMembers, removeMember } from '../../admin/tenants/members.ts';
import { changeOrganization, getOrganization } from '../../admin/tenants/organizations.ts';
import { changeProject, createProject, deleteProject, getProject, listProjects } from '../../admin/tenants/projects.ts';
import type { ManagementContext } from '../app-context.ts';
import { actorOf } from '../authenticate.ts';
import type { ManagementId } from '../operations/management-operations.ts';
import { pageRequest } from '../query.ts';
import type { Handlers } from '../routes.ts';
import type { AppMiddleware, RequestContext } from '../state.ts';
import { answer, answerChange, pathParameter } from './master-route.ts';

/** `/v1/master/organization`: the one that the master key belongs to. */
export function organizationHandlers(app: ManagementContext) {
  return {
    getOrganization: async (ctx) => {
      answer(ctx, await app.store.read((db) => getOrganization(db, actorOf(ctx))));
    },
    changeOrganization: async (ctx) => {
      answer(ctx, await app.store.write((db, now) => changeOrganization(db, actorOf(ctx), ctx.state.body, now)));
    },
  } satisfies Partial<Handlers<ManagementId>>;
}

/** `/v1/master/projects` and `/v1/master/projects/{id}`. */
export function projectHandlers(app: ManagementContext) {
  const { store } = app;

  return {
    listProjects: async (ctx) => {
      const page = pageRequest(ctx);
      answer(ctx, await store.read((db) => listProjects(db, actorOf(ctx), page)));
    },
    createProject: async (ctx) => {
      answer(ctx, await store.write((db, now) => createProject(db, actorOf(ctx), ctx.state.body, now)), 201);
    },
    getProject: async (ctx) => {
      answer(ctx, await store.read((db) => getProject(db, actorOf(ctx), pathParameter(ctx, 'id'))));
    },
    changeProject: async (ctx) => {
      const id = pathParameter(ctx, 'id');
      answer(ctx, await store.write((db, now) => changeProject(db, actorOf(ctx), id, ctx.state.body, now)));
    },
    deleteProject: async (ctx) => {
      const id = pathParameter(ctx, 'id');
      answer(ctx, await store.write((db, now) => deleteProject(db, actorOf(ctx), id, now)));
    },
  } satisfies Partial<Handlers<ManagementId>>;
}

/** `/v1/master/members` and `/v1/master/members/{member}` (membership id, or e-mail). They come by invitation. */
export function memberHandlers(app: ManagementContext) {
  const { store } = app;

  return {
    listMembers: async (ctx) => {
      const page = pageRequest(ctx);
      answer(ctx, await store.read((db) => listMembers(db, actorOf(ctx), page)));
    },
    getMember: async (ctx) => {
      answer(ctx, await store.read((db) => getMember(db, actorOf(ctx), pathParameter(ctx, 'member'))));
    },
    changeMember: async (ctx) => {
      const [actor, member, { body }] = [actorOf(ctx), pathParameter(ctx, 'member'), ctx.state];
      await answerChange(app, ctx, (db, now) => changeMember(db, actor, member, body, now));
    },
    deleteMember: async (ctx) => {
      const member = pathParameter(ctx, 'member');
      answer(ctx, await store.write((db, now) => removeMember(db, actorOf(ctx), member, now)));
    },
  } satisfies Partial<Handlers<ManagementId>>;
}

/** `/v1/master/invitations`, `/v1/master/invitations/{id}` and, without a master key, `/v1/master/invitations/accept`. */
export function invitationHandlers(app: ManagementContext) {
  const { store, clock, peppers } = app;

  return {
    listInvitations: async (ctx) => {
      const page = pageRequest(ctx);
      answer(ctx, await store.read((db) => listInvitations(db, actorOf(ctx), page, clock.now())));
    },
    createInvitation: async (ctx) => {
      const made = await store.write((db, now) =>
        createInvitation(db, actorOf(ctx), ctx.state.body, { now, pepper: peppers[0] }),
      );
      answer(ctx, made, 201);
    },
    acceptInvitation: async (ctx) => {
      const accepted = await store.write((db, now) =>
        acceptInvitation(db, ctx.state.body, { now, peppers, by: 'person' }),
      );
      answer(ctx, accepted, 201);
    },
    getInvitation: async (ctx) => {
      answer(ctx, await store.read((db) => getInvitation(db, actorOf(ctx), pathParameter(ctx, 'id'), clock.now())));
    },
    deleteInvitation: async (ctx) => {
      const id = pathParameter(ctx, 'id');
      answer(ctx, await store.write((db, now) => revokeInvitation(db, actorOf(ctx), id, now)));
    },
  } satisfies Partial<Handlers<ManagementId>>;
}

/** `/v1/master/budgets`, and `…/budget` of a member (membership id or e-mail), a project and the organization. */
export function budgetHandlers(app: ManagementContext) {
  const ofMember = budgetOf(app, (ctx) => ({ kind: 'member', member: pathParameter(ctx, 'member') }));
  const ofProject = budgetOf(app, (ctx) => ({ kind: 'project', project: pathParameter(ctx, 'id') }));
  const ofOrganization = budgetOf(app, () => ({ kind: 'organization' }));
  return {
    listBudgets: async (ctx) => {
      const page = pageRequest(ctx);
      answer(ctx, await app.store.read((db) => listBudgets(db, actorOf(ctx), page, app.clock.now())));
    },
    getMemberBudget: ofMember.get,
    changeMemberBudget: ofMember.change,
    getProjectBudget: ofProject.get,
    changeProjectBudget: ofProject.change,
    getOrganizationBudget: ofOrganization.get,
    changeOrganizationBudget: ofOrganization.change,
  } satisfies Partial<Handlers<ManagementId>>;
}

const budgetOf = ({ store, clock }: ManagementContext, ownerOf: (ctx: RequestContext) => BudgetOwner) =>
  ({
    get: async (ctx) => {
      answer(ctx, await store.read((db) => getBudget(db, actorOf(ctx), ownerOf(ctx), clock.now())));
    },
    change: async (ctx) => {
      const { body } = ctx.state;
      answer(ctx, await store.write((db, now) => changeBudget(db, actorOf(ctx), ownerOf(ctx), body, now)));
    },
  }) satisfies Record<string, AppMiddleware>;
