// POST /v1/moderations: a body that is no moderation request, or a configuration that names no model for it.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import { moderate } from '../../support/images.ts';
import { callRows } from '../../support/rows.ts';

let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startGateway({ MODERATION_MODEL: 'sandbox-paid' });
});

afterAll(() => gateway.close());

const invalid = (message: unknown, param: string | null) => ({
  error: { message, type: 'invalid_request_error', param, code: 'invalid_request' },
});

it.each<[string, string, unknown]>([
  ['/input', 'missing input', {}],
  ['/input', 'input that is a number', { input: 1 }],
  ['/input', 'an empty list', { input: [] }],
  ['/input', 'too long a list', { input: Array(2049).fill('x') }],
  ['/input/1', 'a number in the list', { input: ['x', 1] }],
  ['/input/0/type', 'a part without a type', { input: [{ text: 'x' }] }],
  ['/input/0/image_url/url', 'an image without a URL', { input: [{ type: 'image_url', image_url: {} }] }],
  ['/model', 'a malformed model', { input: 'x', model: 'a fox' }],
  ['', 'a list', ['x']],
])('names the place of its first fault: %s for %s', async (param, _, body) => {
  const answer = await moderate(gateway, body);

  expect([answer.status, answer.json]).toEqual([400, invalid(expect.any(String), param)]);
});

it('a configured model that does not moderate is named', async () => {
  const answer = await moderate(gateway, { input: 'x' });

  expect([answer.status, answer.json]).toEqual([400, invalid('The model `sandbox-paid` does not moderate.', null)]);
  expect(callRows(gateway)).toEqual([]);
});
