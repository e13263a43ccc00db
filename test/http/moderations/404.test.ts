// POST /v1/moderations: nobody there who moderates.
import { expect, it } from 'vitest';
import { startGateway } from '../../support/gateway.ts';
import { moderate } from '../../support/images.ts';

it('the configured model is named where it does not exist', async () => {
  const gateway = await startGateway({ SANDBOX: 'off' });
  const answer = await moderate(gateway, { input: 'x', model: 'anything' });
  await gateway.close();

  expect([answer.status, answer.json]).toEqual([
    404,
    {
      error: {
        message: 'The model `sandbox-moderation` does not exist.',
        type: 'invalid_request_error',
        param: null,
        code: 'model_not_found',
      },
    },
  ]);
});
