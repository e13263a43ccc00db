import type { AppContext } from './state.ts';

/** Answers 200 with JSON, past Koa's own `respond`, whose work on type, length and status a busy route can do without. */
export function sendJson(ctx: AppContext, value: object): void {
  const body = Buffer.from(JSON.stringify(value));
  ctx.respond = false;
  ctx.res.writeHead(200, { 'content-type': 'application/json; charset=utf-8', 'content-length': body.length });
  ctx.res.end(body);
}
