import type { JsonText } from '../core/json-text.ts';
import type { AppContext } from './state.ts';

/** Answers 200 with JSON, past Koa's own `respond`, whose work on type, length and status a busy route can do without. */
export function sendJson(ctx: AppContext, value: object): void {
  sendJsonText(ctx, JSON.stringify(value));
}

/** The same of JSON that is already written. */
export function sendJsonText(ctx: AppContext, json: JsonText): void {
  const pieces = typeof json === 'string' ? [Buffer.from(json)] : json;
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
  ctx.respond = false;
  ctx.res.writeHead(200, { 'content-type': 'application/json; charset=utf-8', 'content-length': length });
  for (const piece of pieces) ctx.res.write(piece);
  ctx.res.end();
}
