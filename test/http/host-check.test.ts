import { createServer } from 'node:http';
import Koa from 'koa';
import { expect, it } from 'vitest';
import { hostCheck } from '../../src/http/pipeline.ts';
import type { RequestState } from '../../src/http/state.ts';
import { send } from '../support/request.ts';

it.each([
  ['GATE.internal', 'gate.internal'],
  ['FE80::1', '[fe80::1]:8080'],
])('a bound address in capitals, %s, is served under its usual spelling', async (boundHost, host) => {
  const app = new Koa<RequestState>().use(hostCheck({ boundHost, publicUrl: undefined, allowedHosts: [] }));
  app.use((ctx) => {
    ctx.status = 204;
  });
  const server = createServer(app.callback());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');

  const { status } = await send(`http://127.0.0.1:${address.port}`, { headers: [['Host', host]] });

  server.close();
  expect(status).toBe(204);
});
