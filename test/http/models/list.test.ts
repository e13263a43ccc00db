// GET /v1/models: the catalogue, and what a key may use of it.
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createAlias, deleteAlias } from '../../../src/admin/providers/aliases.ts';
import { createCatalog } from '../../../src/catalog/catalog.ts';
import { ManualClock, systemClock } from '../../../src/domain/time.ts';
import type { ModelList, RuleCreate } from '../../../src/generated/types.ts';
import { validator } from '../../../src/lib/schemas.ts';
import { bearer } from '../../support/chat.ts';
import { addKey, addRule, type RuleScope, removeRule, startGateway, type TestGateway } from '../../support/gateway.ts';
import { addOwnModels } from '../../support/own-models.ts';
import { type Answer, send } from '../../support/request.ts';
import { callRows, decisionRows } from '../../support/rows.ts';
import { upstreamEnv } from '../../support/upstream.ts';

const validateModelList = validator('ModelList');

let gateway: TestGateway;
let added: { scope: RuleScope; id: string }[] = [];

beforeAll(async () => {
  gateway = await startGateway(
    {
      ...upstreamEnv('acme', 'http://127.0.0.1:1', 'large,org/deep', 'large=2/8'),
      ...upstreamEnv('dear', 'http://127.0.0.1:1', 'large', 'large=20/80'),
    },
    { clock: new ManualClock('2026-11-21T12:00:00Z') },
  );
});

afterEach(() => {
  for (const { scope, id } of added) removeRule(gateway, scope, id);
  added = [];
});

afterAll(() => gateway.close());

function rule(scope: RuleScope, create: RuleCreate): void {
  added.push({ scope, id: addRule(gateway, scope, create).id });
}

type Headers = readonly (readonly [string, string])[];

const get = (query = '', headers: Headers = []): Promise<Answer> =>
  send(gateway.origin, { path: `/v1/models${query}`, headers });

const keyed = (query = '', headers: Headers = []): Promise<Answer> =>
  get(query, [bearer(gateway.firstRun.gatewayKey), ...headers]);

function listOf({ status, json, text }: Answer): ModelList {
  if (status === 200 && validateModelList(json)) return json;
  throw new Error(`no model list: ${status} ${text}`);
}

/** The models of this file: those that the sandbox and the upstreams of the environment serve, not the catalogue's others. */
const OURS = ['acme', 'dear', 'sandbox'];
const ours = (answer: Answer): ModelList['data'] =>
  listOf(answer).data.filter(({ providers }) => providers.some(({ providerId }) => OURS.includes(providerId)));
const idsOf = (answer: Answer): string[] => ours(answer).map(({ id }) => id);

const SANDBOX = [
  'sandbox-faulty',
  'sandbox-free',
  'sandbox-image-max',
  'sandbox-image-plus',
  'sandbox-moderation',
  'sandbox-paid',
  'sandbox-slow',
];
/** Judged by provider and address alone, as its calls are. */
const MODERATION = ['sandbox-moderation'];
const ALL = ['large', 'org--deep', ...SANDBOX];

const SANDBOX_PAID = {
  id: 'sandbox-paid',
  object: 'model',
  created: Date.parse('2026-11-21T00:00:00Z') / 1000,
  owned_by: 'sandbox',
  name: 'Sandbox Paid',
  display_name: 'Sandbox Paid',
  aliases: [],
  description: 'Echoes the last message, as if in the US, at a price.',
  family: 'sandbox',
  architecture: { input_modalities: ['text', 'image'], output_modalities: ['text'], tokenizer: 'four-characters' },
  top_provider: { is_moderated: false },
  pricing: { prompt: '0.000001', completion: '0.000004' },
  context_length: 128_000,
  max_output: 4096,
  supported_parameters: [
    'max_completion_tokens',
    'max_tokens',
    'n',
    'response_format',
    'stop',
    'stream',
    'tool_choice',
    'tools',
  ],
  json_output: true,
  structured_outputs: true,
  free: false,
  stability: 'stable',
  providers: [
    {
      providerId: 'sandbox',
      externalId: 'sandbox-paid',
      pricing: { prompt: '0.000001', completion: '0.000004' },
      streaming: true,
      vision: true,
      tools: true,
      parallelToolCalls: false,
      reasoning: false,
      max_output: 4096,
      stability: 'stable',
      tags: ['no_training', 'region:us', 'retention:none', 'stability:stable'],
    },
  ],
};

describe('without a key', () => {
  it('is the whole catalogue, each model with all that is known of it', async () => {
    const answer = await get();

    expect(listOf(answer).object).toBe('list');
    expect(idsOf(answer)).toEqual(ALL);
    expect(listOf(answer).data.find(({ id }) => id === 'sandbox-paid')).toEqual(SANDBOX_PAID);
  });

  it('prices a model by its cheapest provider and leaves out what is not known', async () => {
    const data = ours(await get());

    const large = data.find(({ id }) => id === 'large');
    expect([large?.pricing, large?.providers.map(({ providerId }) => providerId)]).toEqual([
      { prompt: '0.000002', completion: '0.000008' },
      ['acme', 'dear'],
    ]);
    expect(data.find(({ id }) => id === 'org--deep')?.pricing).toEqual({});
    expect(JSON.stringify(data)).not.toContain('null');
  });

  it('may be kept by a client, and is not sent twice to one that has it', async () => {
    const first = await get();
    const again = await get('', [['if-none-match', String(first.headers.etag)]]);
    const other = await get('', [['if-none-match', '"other"']]);

    expect([first.headers['cache-control'], first.headers.etag]).toEqual([
      'public, no-cache',
      expect.stringMatching(/^"[\w-]+"$/),
    ]);
    expect([again.status, again.text, again.headers.etag]).toEqual([304, '', first.headers.etag]);
    expect([other.status, other.text]).toEqual([200, first.text]);
  });

  it('is answered to HEAD with the same headers and no body', async () => {
    const answer = await send(gateway.origin, { method: 'HEAD', path: '/v1/models' });

    expect([answer.status, answer.text, answer.headers['content-type']]).toEqual([
      200,
      '',
      'application/json; charset=utf-8',
    ]);
  });
});

describe('mapped', () => {
  it('lists one entry for each mapping, named as a request pins it, with its own price', async () => {
    const { data } = listOf(await get('?mapped=true'));

    const upstreams = data.filter(({ id }) => /^(?:acme|dear)\//.test(id));
    expect(upstreams.map(({ id, pricing }) => [id, pricing.prompt])).toEqual([
      ['acme/large', '0.000002'],
      ['dear/large', '0.00002'],
      ['acme/org--deep', undefined],
    ]);
    expect(data.filter(({ id }) => id.startsWith('sandbox/')).map(({ id }) => id)).toEqual(
      SANDBOX.map((id) => `sandbox/${id}`),
    );
    expect(data.every(({ providers }) => providers.length === 1)).toBe(true);
  });
});

describe('every model of the list', () => {
  it('has the day of its release, or of its entry, in whole seconds, as SDKs require (issue 12, 18)', async () => {
    const { data } = listOf(await get('?mapped=true&include_deactivated=true'));

    expect(data.filter(({ created }) => !Number.isInteger(created) || Number(created) < 1_500_000_000)).toEqual([]);
  });

  it('is served by some endpoint: of the models that moderate, only the configured one (issue 12, 18)', async () => {
    const other = await startGateway({ MODERATION_MODEL: 'omni-moderation-latest' });
    const moderating = ({ data }: ModelList): string[] =>
      data.filter(({ architecture }) => architecture.output_modalities.includes('moderation')).map(({ id }) => id);
    const lists = [listOf(await get()), listOf(await send(other.origin, { path: '/v1/models' }))].map(moderating);
    await other.close();

    expect(lists).toEqual([['sandbox-moderation'], ['omni-moderation-latest']]);
  });
});

describe('the catalogue’s models', () => {
  it('are listed with all that is known of them at each provider', async () => {
    const opus = listOf(await get()).data.find(({ id }) => id === 'claude-opus-4-5');

    expect(opus).toMatchObject({
      owned_by: 'anthropic',
      family: 'anthropic',
      aliases: ['claude-opus-4-5-20251101', 'claude-opus-4.5'],
      context_length: 200_000,
      max_output: 64_000,
      structured_outputs: true,
    });
    expect(opus?.providers[0]).toEqual({
      providerId: 'anthropic',
      externalId: 'claude-opus-4-5-20251101',
      pricing: {
        prompt: '0.000005',
        completion: '0.000025',
        input_cache_read: '0.0000005',
        input_cache_write: '0.00000625',
        input_cache_write_1h: '0.00001',
      },
      streaming: true,
      vision: true,
      cancellation: true,
      tools: true,
      parallelToolCalls: true,
      reasoning: true,
      reasoning_efforts: ['low', 'medium', 'high'],
      min_cacheable_tokens: 4096,
      max_output: 64_000,
      stability: 'stable',
      tags: ['no_training', 'region:global', 'retention:30d', 'stability:stable'],
    });
  });

  it('show the base prices of a mapping that charges more for long prompts', async () => {
    const { data } = listOf(await get('?mapped=true'));

    expect(data.find(({ id }) => id === 'anthropic/claude-haiku-5-5')?.pricing.prompt).toBe('0.0000001');
  });

  it('whose end is past are listed only with include_deactivated, deprecated ones not with exclude_deprecated', async () => {
    const [all, ended, lasting] = await Promise.all(
      ['', '?include_deactivated=true', '?exclude_deprecated=true'].map(async (query) =>
        listOf(await get(query)).data.map(({ id }) => id),
      ),
    );

    expect([all, ended, lasting].map((ids) => ids?.includes('claude-3-opus'))).toEqual([false, true, false]);
    expect(all).toEqual(expect.arrayContaining(lasting ?? []));
  });
});

describe('no_training', () => {
  it('leaves only providers that are known not to train on data', async () => {
    const answer = await get('?no_training=1');

    expect(idsOf(answer)).toEqual(SANDBOX);
    expect(
      listOf(answer)
        .data.find(({ id }) => id === 'gpt-oss-120b')
        ?.providers.map(({ providerId }) => providerId),
    ).toEqual(['groq']);
    expect(listOf(answer).data.map(({ id }) => id)).not.toContain('deepseek-r1');
  });
});

describe('a flag of the query', () => {
  it.each(['true', '1'])('is set by %s', async (value) => {
    expect(idsOf(await get(`?mapped=${value}`))).toContain('acme/large');
  });

  it.each(['false', '0', ''])('is not set by %j', async (value) => {
    expect(idsOf(await get(`?mapped=${value}`))).toEqual(ALL);
  });

  it.each(['include_deactivated', 'exclude_deprecated', 'no_training', 'mapped', 'include_restricted'])(
    'is 400 for anything else: %s',
    async (name) => {
      for (const query of [`?${name}=yes`, `?${name}=TRUE`, `?${name}=1&${name}=1`, `?${name}=%E2%9C%93`]) {
        const answer = await get(query);

        expect([answer.status, answer.json]).toEqual([
          400,
          {
            error: {
              message: `The query parameter ${name} must be true or false.`,
              type: 'invalid_request_error',
              param: `/${name}`,
              code: 'invalid_request',
            },
          },
        ]);
      }
    },
  );

  it('that nobody knows is ignored', async () => {
    expect(idsOf(await get('?limit=1&__proto__=x'))).toEqual(ALL);
  });
});

describe('with a key', () => {
  it('is private, and tells the revision of the rules; nothing is recorded as a call', async () => {
    const answer = await keyed();

    expect([answer.headers['cache-control'], answer.headers.etag, answer.headers['x-policy-revision']]).toEqual([
      'private, no-store',
      undefined,
      expect.stringMatching(/^[0-9a-f]{12}\.\d+$/),
    ]);
    expect('x-decision-id' in answer.headers).toBe(false);
    expect([idsOf(answer), callRows(gateway), decisionRows(gateway)]).toEqual([ALL, [], []]);
  });

  const restricted: readonly [RuleScope, RuleCreate, readonly string[]][] = [
    ['key', { ruleType: 'deny_models', ruleValue: { models: ['sandbox-*'] } }, ['large', 'org--deep', ...MODERATION]],
    ['member', { ruleType: 'allow_providers', ruleValue: { providers: ['sandbox'] } }, SANDBOX],
    [
      'organization',
      { ruleType: 'allow_pricing', ruleValue: { pricingType: 'free' } },
      ['sandbox-free', ...MODERATION],
    ],
    ['key', { ruleType: 'deny_pricing', ruleValue: { maxInputPrice: '1.5' } }, SANDBOX],
    ['key', { ruleType: 'deny_models', ruleValue: { models: ['*'] } }, MODERATION],
  ];

  it.each(restricted)('lists only what a %s rule leaves: %j', async (scope, create, expected) => {
    rule(scope, create);

    expect(idsOf(await keyed())).toEqual(expected);
    expect(idsOf(await get())).toEqual(ALL);
  });

  it('leaves out what a key with a spend limit cannot call, because its price is unknown', async () => {
    const { token } = addKey(gateway, { usageLimit: '1' });

    expect(idsOf(await get('', [bearer(token)]))).toEqual(['large', ...SANDBOX]);
  });

  it('prices and describes a model by the mappings that the key may use', async () => {
    rule('key', { ruleType: 'deny_providers', ruleValue: { providers: ['acme'] } });

    const large = listOf(await keyed()).data.find(({ id }) => id === 'large');

    expect([large?.pricing.prompt, large?.providers.map(({ providerId }) => providerId)]).toEqual([
      '0.00002',
      ['dear'],
    ]);
  });

  it('is empty for a caller whose address the rules deny', async () => {
    rule('key', { ruleType: 'allow_ip_cidrs', ruleValue: { ipCidrs: ['192.0.2.0/24'] } });

    const [unknown, outside, inside] = [
      await keyed(),
      await keyed('', [['x-forwarded-for', '198.51.100.1']]),
      await keyed('', [['x-forwarded-for', '192.0.2.1']]),
    ];

    expect([idsOf(unknown), idsOf(outside), idsOf(inside)]).toEqual([[], [], ALL]);
  });

  it('is the whole catalogue with include_restricted', async () => {
    rule('key', { ruleType: 'deny_models', ruleValue: { models: ['*'] } });

    const answer = await keyed('?include_restricted=true');

    expect([idsOf(answer), answer.headers['cache-control']]).toEqual([ALL, 'private, no-store']);
  });

  it('holds the custom models of its organization, with include_restricted even those that a rule denies', async () => {
    addOwnModels(gateway.db, gateway.firstRun, 'https://models.example', [], { mine: {} });
    const custom = (answer: Answer): string[] =>
      listOf(answer).data.flatMap(({ id }) => (id.startsWith('own/') ? [id] : []));
    const permitted = custom(await keyed());
    rule('key', { ruleType: 'deny_models', ruleValue: { models: ['*'] } });

    const denied = [
      await keyed(),
      await keyed('?include_restricted=true'),
      await keyed('/own%2Fmine'),
      await keyed('/own%2Fmine?include_restricted=true'),
      await get('?include_restricted=true'),
    ];

    const [usable, all, notUsable, one, anybody] = denied;
    if (usable === undefined || all === undefined || anybody === undefined) throw new Error('an answer is missing');
    expect([permitted, custom(usable), custom(all), custom(anybody)]).toEqual([['own/mine'], [], ['own/mine'], []]);
    expect([idsOf(all), notUsable?.status, one?.json]).toMatchObject([ALL, 404, { id: 'own/mine' }]);
  });

  it('follows a change of the rules on the very next request', async () => {
    const before = await keyed();
    rule('key', { ruleType: 'deny_models', ruleValue: { models: ['large'] } });
    const after = await keyed();

    expect(idsOf(before).filter((id) => !idsOf(after).includes(id))).toEqual(['large']);
    expect(before.headers['x-policy-revision']).not.toBe(after.headers['x-policy-revision']);
  });
});

describe('with a key that may not be used', () => {
  it('is 401, not the whole catalogue', async () => {
    const spent = addKey(gateway, { usageLimit: '0' });
    const answers = [
      await get('', [bearer(spent.token)]),
      await get('', [bearer('x')]),
      await get('', [['authorization', '']]),
    ];

    expect(answers.map(({ status, json }) => [status, json])).toEqual([
      [
        401,
        {
          error: {
            message: 'This API key has reached its all-time usage limit of 0 USD.',
            type: 'invalid_request_error',
            param: null,
            code: 'usage_limit_reached',
          },
        },
      ],
      [
        401,
        {
          error: {
            message: 'The API key is not valid.',
            type: 'invalid_request_error',
            param: null,
            code: 'invalid_api_key',
          },
        },
      ],
      [
        401,
        {
          error: {
            message: 'No API key was given: send `Authorization: Bearer <key>`.',
            type: 'invalid_request_error',
            param: null,
            code: 'invalid_api_key',
          },
        },
      ],
    ]);
  });
});

describe('aliases', () => {
  const actor = () => ({ kind: 'cli', organizationId: gateway.firstRun.organizationId }) as const;
  const write = () => ({
    now: Date.now(),
    catalog: createCatalog({ sandbox: true, upstreams: gateway.config.upstreams, clock: systemClock }),
  });

  it('stand first in the list of a key that may use one of their models, in place of names of the catalogue', async () => {
    const ids = [
      ['fast', 'large', 'sandbox-free'],
      ['sandbox-paid', 'acme/large'],
      ['slow', 'sandbox-slow'],
    ].map(([name, ...models]) => createAlias(gateway.db, actor(), { name, models }, write()).alias.id);
    rule('key', { ruleType: 'deny_models', ruleValue: { models: ['dear/large', 'sandbox-slow'] } });
    const listed = ours(await keyed());
    expect(listed.slice(0, 2)).toMatchObject([
      {
        id: 'fast',
        owned_by: 'organization',
        aliases: [],
        description: 'An alias of large, sandbox-free.',
        providers: [{ providerId: 'acme' }, { providerId: 'sandbox' }],
        pricing: { prompt: '0', completion: '0' },
      },
      { id: 'sandbox-paid', owned_by: 'organization', providers: [{ providerId: 'acme' }] },
    ]);
    const names = listed.map(({ id }) => id);
    expect(names.filter((id) => id === 'sandbox-paid')).toHaveLength(1);
    expect(names).not.toContain('slow');
    expect(idsOf(await keyed('?include_restricted=true'))).toContain('slow');
    expect(idsOf(await keyed('?mapped=true'))).toEqual(expect.arrayContaining(['acme/large', 'sandbox/sandbox-paid']));
    expect(idsOf(await keyed('?mapped=true'))).not.toContain('fast');
    expect(idsOf(await get())).not.toContain('fast');
    expect((await keyed('/fast')).json).toMatchObject({ id: 'fast' });
    expect((await keyed('/slow')).status).toBe(404);
    for (const id of ids) deleteAlias(gateway.db, actor(), id, Date.now());
    expect(idsOf(await keyed())).not.toContain('fast');
  });
});
