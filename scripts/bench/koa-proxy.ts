// The usual proxy: Koa, the body parsed and serialised again, both ways. Answers whole bodies only.
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import Koa from 'koa';
import { Pool } from 'undici';
import { serve } from './serve.ts';

const pool = new Pool(process.env.BENCH_UPSTREAM ?? '', { connections: 256 });
const app = new Koa();
app.silent = true;

app.use(async (context) => {
  const body = await json(context.req);
  const answer = await pool.request({
    path: context.path,
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: context.get('authorization') },
    body: JSON.stringify(body),
  });
  context.status = answer.statusCode;
  context.type = 'application/json';
  context.body = JSON.stringify(await answer.body.json());
});

serve(createServer(app.callback()));
