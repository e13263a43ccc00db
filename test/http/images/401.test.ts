// POST /v1/images/generations: without a good key.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { JSON_TYPE, post } from '../../support/chat.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import { draw, fox } from '../../support/images.ts';
import { callRows } from '../../support/rows.ts';

let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startGateway();
});

afterAll(() => gateway.close());

it('a missing or unknown key is refused before the body is read', async () => {
  const none = await post(gateway, '{', [JSON_TYPE], { path: '/v1/images/generations' });
  const unknown = await draw(gateway, fox(), { token: 'pcl_x' });

  expect([none.status, unknown.status, callRows(gateway)]).toEqual([401, 401, []]);
  expect([none.json, unknown.json]).toMatchObject(Array(2).fill({ error: { code: 'invalid_api_key' } }));
});
