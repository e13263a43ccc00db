// POST /v1/images/generations: a model that is not there.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import { draw, fox } from '../../support/images.ts';
import { callRows } from '../../support/rows.ts';

let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startGateway({ SANDBOX: 'off' });
});

afterAll(() => gateway.close());

const missing = (model: string) => ({
  error: {
    message: `The model \`${model}\` does not exist.`,
    type: 'invalid_request_error',
    param: null,
    code: 'model_not_found',
  },
});

it('a model that does not exist is named; so is the default one where the sandbox is off', async () => {
  const named = await draw(gateway, fox({ model: 'no-such-model' }));
  const byDefault = await draw(gateway, fox());

  expect([named.status, named.json]).toEqual([404, missing('no-such-model')]);
  expect([byDefault.status, byDefault.json]).toEqual([404, missing('sandbox-image-plus')]);
  expect(callRows(gateway)).toEqual([]);
});
