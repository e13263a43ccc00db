// POST /v1/images/generations: a client that goes away.
import { request } from 'node:http';
import { expect, it } from 'vitest';
import { startGateway } from '../../support/gateway.ts';
import { fox } from '../../support/images.ts';
import { callRows, settled } from '../../support/rows.ts';
import { startUpstream, upstreamEnv } from '../../support/upstream.ts';

it('cancels the call upstream, which is booked as left and tried nowhere else', async () => {
  const upstream = await startUpstream();
  const arrived = Promise.withResolvers<void>();
  const left = Promise.withResolvers<void>();
  upstream.begin((response) => {
    response.on('close', () => left.resolve());
    arrived.resolve();
  });
  const env = upstreamEnv('acme', upstream.origin, 'sandbox-image-plus', 'sandbox-image-plus=0/0');
  const gateway = await startGateway(env);
  const outgoing = request(`${gateway.origin}/v1/images/generations`, {
    method: 'POST',
    agent: false,
    headers: { authorization: `Bearer ${gateway.firstRun.gatewayKey}`, 'content-type': 'application/json' },
  });
  outgoing.on('error', () => {});
  outgoing.end(JSON.stringify(fox()));

  await arrived.promise;
  outgoing.destroy();
  await left.promise;

  const row = await settled(gateway, String(callRows(gateway)[0]?.requestId));
  expect([row.statusCode, row.errorCode, row.cost, JSON.parse(row.attemptsJson ?? '').length]).toEqual([
    499,
    'client_closed_request',
    0n,
    1,
  ]);
  await gateway.close();
  await upstream.close();
});
