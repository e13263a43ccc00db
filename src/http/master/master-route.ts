import { changeRehearsed } from '../../admin/rules/judged-change.ts';
import { ApiError } from '../../domain/errors.ts';
import type { RuleWidening } from '../../generated/types.ts';
import { validator } from '../../lib/schemas.ts';
import type { Database } from '../../store/db/database.ts';
import type { Analysis } from '../../workbench/analysis/analyst.ts';
import { changesAnything, rehearse } from '../../workbench/analysis/rehearsal.ts';
import type { ManagementContext } from '../app-context.ts';
import { actorOf } from '../authenticate.ts';
import { flag } from '../query.ts';
import type { RequestContext } from '../state.ts';

const validateRuleWidening = validator('RuleWidening');

/** A named part of the path, decoded. */
export function pathParameter(ctx: RequestContext, name: string): string {
  const params: unknown = ctx.params;
  const value = typeof params === 'object' && params !== null ? Reflect.get(params, name) : undefined;
  if (typeof value !== 'string') throw new Error(`the route's path has no part ${name}`);
  return value;
}

/** An answer that another thread wrote as JSON. */
export function answerWritten(ctx: RequestContext, { buffer, byteOffset, byteLength }: Uint8Array): void {
  ctx.set('cache-control', 'no-store');
  ctx.type = 'application/json';
  ctx.body = Buffer.from(buffer, byteOffset, byteLength);
}

/** Answers with the analyst's findings, and the policy and rules they rest on. */
export function answerAnalysis(ctx: RequestContext, { json, policyRevision }: Analysis): void {
  ctx.set('x-policy-revision', policyRevision);
  answerWritten(ctx, json);
}

/** An answer as JSON. What it says may be secret or change at once, so nobody on the way keeps it. */
export function answer(ctx: RequestContext, body: object, status = 200): void {
  ctx.status = status;
  ctx.set('cache-control', 'no-store');
  ctx.body = body;
}

/** The answer of the analyst about a widening, which comes as bytes. */
export function wideningIn({ json }: Analysis): RuleWidening {
  const widening: unknown = JSON.parse(new TextDecoder().decode(json));
  if (!validateRuleWidening(widening)) throw new Error('The analyst answered with something else.');
  return widening;
}

/**
 * Makes a change and answers with it and with the access that it adds; with `failOnNewAccess` in the query one that adds any is
 * refused. @param work is done once to judge it, undone, and done again. `isUnknown`: it cannot be judged
 */
export async function answerChange<Answer extends object>(
  { store, analyst }: Pick<ManagementContext, 'store' | 'analyst'>,
  ctx: RequestContext,
  work: (db: Database, now: number) => Answer,
  { status = 200, isUnknown = false }: { readonly status?: number; readonly isUnknown?: boolean } = {},
): Promise<void> {
  const { organizationId } = actorOf(ctx);
  const failOnNewAccess = flag(ctx, 'failOnNewAccess');
  const made = await changeRehearsed({
    plan: async () => {
      const rehearsal = await store.write((db, now) => rehearse(db, organizationId, () => work(db, now)));
      return { ...rehearsal, matters: isUnknown || changesAnything(rehearsal), failOnNewAccess };
    },
    judge: async ({ before, after }) => {
      if (isUnknown) throw new ApiError(503, 'not_judged', 'What a policy of your own makes of it is not known.');
      return wideningIn(await analyst.analyse({ kind: 'rehearsed', organizationId, before, after }));
    },
    write: (check) =>
      store.write((db, now) => {
        const widens = check(db);
        return { ...work(db, now), widens };
      }),
  });
  answer(ctx, made, status);
}
