import type { ServerResponse } from 'node:http';
import type { JsonText } from '../../core/call/written-answer.ts';
import type { AppContext } from '../state.ts';

/** Answers 200 with written JSON, past Koa's own `respond`, whose work on type, length and status a busy route can do without. */
export function sendJsonText(ctx: AppContext, json: JsonText): void {
  if (typeof json === 'string') {
    // As a string, Node sends it in one piece with the head.
    begin(ctx, Buffer.byteLength(json)).end(json);
    return;
  }
  const res = begin(
    ctx,
    json.reduce((sum, piece) => sum + piece.length, 0),
  );
  for (const piece of json) res.write(piece);
  res.end();
}

function begin(ctx: AppContext, length: number): ServerResponse {
  ctx.respond = false;
  return ctx.res.writeHead(200, { 'content-type': 'application/json; charset=utf-8', 'content-length': length });
}
