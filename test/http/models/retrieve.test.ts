// GET /v1/models/{id}: one entry of the list.
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ManualClock } from '../../../src/domain/time.ts';
import type { Model, ModelList } from '../../../src/generated/types.ts';
import { validator } from '../../../src/lib/schemas.ts';
import { bearer } from '../../support/chat.ts';
import { addRule, removeRule, startGateway, type TestGateway } from '../../support/gateway.ts';
import { type Answer, send } from '../../support/request.ts';
import { upstreamEnv } from '../../support/upstream.ts';

const validateModel = validator('Model');
const validateModelList = validator('ModelList');

let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startGateway(upstreamEnv('acme', 'http://127.0.0.1:1', 'large,org/deep,gpt-5.5', 'large=2/8'), {
    clock: new ManualClock('2026-11-21T12:00:00Z'),
  });
});

afterAll(() => gateway.close());

type Headers = readonly (readonly [string, string])[];

const get = (id: string, headers: Headers = []): Promise<Answer> =>
  send(gateway.origin, { path: `/v1/models/${id}`, headers });

const keyed = (id: string): Promise<Answer> => get(id, [bearer(gateway.firstRun.gatewayKey)]);

function modelOf({ status, json, text }: Answer): Model {
  if (status === 200 && validateModel(json)) return json;
  throw new Error(`no model: ${status} ${text}`);
}

async function listed(query = ''): Promise<ModelList['data']> {
  const { json } = await send(gateway.origin, { path: `/v1/models${query}` });
  if (validateModelList(json)) return json.data;
  throw new Error('no model list');
}

const notFound = (id: string) => ({
  error: {
    message: expect.stringMatching(`^The model \`${RegExp.escape(id)}\` does not exist\\.`),
    type: 'invalid_request_error',
    param: null,
    code: 'model_not_found',
  },
});

describe('without a key', () => {
  it.each(['gpt-5.5', 'sandbox-free', 'org--deep'])('is the entry of the list: %s', async (id) => {
    const entry = (await listed()).find((model) => model.id === id);

    expect(modelOf(await get(id))).toEqual(entry);
  });

  it.each(['openai%2Fgpt-5.5', 'openai/gpt-5.5', 'acme%2Fgpt-5.5'])(
    'is one mapping behind a provider, encoded or not: %s',
    async (id) => {
      const entry = (await listed('?mapped=true')).find((model) => model.id === decodeURIComponent(id));

      expect(modelOf(await get(id))).toEqual(entry);
    },
  );

  it.each([
    ['an alias', 'gpt-5.5-2026-04-23', 'gpt-5.5'],
    ['an alias behind a provider', 'openai%2Fgpt-5.5-2026-04-23', 'openai/gpt-5.5'],
    ['the provider’s own id', 'openrouter%2Fopenai%2Fgpt-5.5', 'openrouter/gpt-5.5'],
    ['an upstream’s own id', 'acme%2Forg%2Fdeep', 'acme/org--deep'],
  ])('is found by %s', async (_name, name, id) => {
    expect(modelOf(await get(name)).id).toBe(id);
  });

  it('is found under mapped too, and may be kept by a client', async () => {
    const answer = await get('gpt-5.5?mapped=true');

    expect([modelOf(answer).id, answer.headers['cache-control']]).toEqual(['gpt-5.5', 'public, no-cache']);
  });

  it('is one that has ended only where that is asked for', async () => {
    const [without, asked] = [await get('claude-3-opus'), await get('claude-3-opus?include_deactivated=true')];

    expect([without.status, modelOf(asked).deactivated_at]).toEqual([404, '2026-01-05T00:00:00Z']);
  });

  it.each(['nope', 'openai%2Fnope', 'sandbox%2Fgpt-5.5', 'GPT-5.5', '__proto__', '%E2%9C%93'])(
    'is 404 for a model that is not there: %s',
    async (id) => {
      const answer = await get(id);

      expect([answer.status, answer.json]).toEqual([404, notFound(decodeURIComponent(id))]);
    },
  );

  it('is 400 for a flag that is none', async () => {
    const answer = await get('gpt-5.5?include_deactivated=yes');

    expect([answer.status, answer.json]).toMatchObject([400, { error: { param: '/include_deactivated' } }]);
  });
});

describe('with a key', () => {
  it('is what the key may use and could call, as its list has it', async () => {
    const answer = await keyed('gpt-5.5');

    expect(modelOf(answer).providers.map(({ providerId }) => providerId)).toEqual(['acme']);
    expect([answer.headers['cache-control'], answer.headers['x-policy-revision']]).toEqual([
      'private, no-store',
      expect.stringMatching(/^[0-9a-f]{12}\.\d+$/),
    ]);
  });

  it('is 404 for what it has no credential for, unless the whole catalogue is asked for', async () => {
    const [own, pinned, all] = [
      await keyed('claude-opus-5-5'),
      await keyed('openai%2Fgpt-5.5'),
      await keyed('claude-opus-5-5?include_restricted=true'),
    ];

    expect([own.status, own.json]).toEqual([404, notFound('claude-opus-5-5')]);
    expect([pinned.status, modelOf(all).id]).toEqual([404, 'claude-opus-5-5']);
  });

  it('is 404 for what a rule denies, which says no more than of a model that is not there', async () => {
    const { id } = addRule(gateway, 'key', { ruleType: 'deny_models', ruleValue: { models: ['large'] } });
    const denied = await keyed('large');
    removeRule(gateway, 'key', id);
    const again = await keyed('large');

    expect([denied.status, denied.json, again.status]).toEqual([404, notFound('large'), 200]);
  });

  it('is 401 with one that may not be used', async () => {
    expect((await get('gpt-5.5', [bearer('x')])).status).toBe(401);
  });
});

describe('any other method', () => {
  it('is 405', async () => {
    const answer = await send(gateway.origin, { method: 'DELETE', path: '/v1/models/gpt-5.5' });

    expect([answer.status, answer.headers.allow]).toEqual([405, 'GET, HEAD, OPTIONS']);
  });
});

describe('the openai SDK', () => {
  it('lists and retrieves models, also behind a provider', async () => {
    const client = new OpenAI({ baseURL: `${gateway.origin}/v1`, apiKey: gateway.firstRun.gatewayKey });

    expect((await client.models.list()).data.map(({ id }) => id)).toContain('sandbox-free');
    expect(await client.models.retrieve('sandbox/sandbox-free')).toMatchObject({
      id: 'sandbox/sandbox-free',
      owned_by: 'sandbox',
    });
    await expect(client.models.retrieve('nope')).rejects.toMatchObject({ status: 404, code: 'model_not_found' });
  });
});
