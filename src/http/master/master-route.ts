import type { Analysis } from '../../workbench/analysis/analyst.ts';
import type { RequestContext } from '../state.ts';

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
