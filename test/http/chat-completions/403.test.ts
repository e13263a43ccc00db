// POST /v1/chat/completions: a request that an IAM rule refuses.
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { RuleCreate } from '../../../src/generated/types.ts';
import { chat, completionOf, hello } from '../../support/chat.ts';
import { addRule, type RuleScope, removeRule, startGateway, type TestGateway } from '../../support/gateway.ts';
import { callRow, callRows, decisionRows } from '../../support/rows.ts';
import { completion, json, startUpstream, type TestUpstream, upstreamEnv } from '../../support/upstream.ts';

let upstream: TestUpstream;
let gateway: TestGateway;
let added: { scope: RuleScope; id: string }[] = [];

beforeAll(async () => {
  upstream = await startUpstream();
  gateway = await startGateway({
    ...upstreamEnv('cheap', upstream.origin, 'shared', 'shared=1/1'),
    ...upstreamEnv('dear', upstream.origin, 'shared,birds/swift-2026', 'shared=2/8'),
  });
});

afterEach(() => {
  for (const { scope, id } of added) removeRule(gateway, scope, id);
  added = [];
});

afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

function rule(scope: RuleScope, create: RuleCreate): string {
  const { id } = addRule(gateway, scope, create);
  added.push({ scope, id });
  return id;
}

const denied = (message: string) => ({
  error: { message, type: 'invalid_request_error', param: null, code: 'permission_denied' },
});

const from = (address: string) => ({ headers: [['x-forwarded-for', address]] as const });

describe('each kind of rule', () => {
  const cases: readonly [RuleCreate, (id: string) => string][] = [
    [
      { ruleType: 'deny_models', ruleValue: { models: ['sandbox-paid', 'other'] } },
      (id) => `Access denied: model not allowed: sandbox-paid is denied by rule ${id}.`,
    ],
    [
      { ruleType: 'deny_models', ruleValue: { models: ['sandbox/*'] } },
      (id) => `Access denied: model not allowed: sandbox/* is denied by rule ${id}.`,
    ],
    [
      { ruleType: 'allow_models', ruleValue: { models: ['sandbox-free'] } },
      (id) => `Access denied: model not allowed: sandbox-paid is not among the models allowed by rule ${id}.`,
    ],
    [
      { ruleType: 'deny_providers', ruleValue: { providers: ['sandbox'] } },
      (id) => `Access denied: provider blocked: sandbox is denied by rule ${id}.`,
    ],
    [
      { ruleType: 'allow_providers', ruleValue: { providers: ['cheap'] } },
      (id) => `Access denied: provider blocked: sandbox is not among the providers allowed by rule ${id}.`,
    ],
    [
      { ruleType: 'deny_pricing', ruleValue: { pricingType: 'paid' } },
      (id) => `Access denied: pricing constraint exceeded: pricing type paid is denied by rule ${id}.`,
    ],
    [
      { ruleType: 'deny_ip_cidrs', ruleValue: { ipCidrs: ['192.0.2.0/24'] } },
      (id) => `Access denied: IP not permitted: the client address lies in 192.0.2.0/24, denied by rule ${id}.`,
    ],
    [
      { ruleType: 'allow_ip_cidrs', ruleValue: { ipCidrs: ['198.51.100.0/24'] } },
      (id) =>
        `Access denied: IP not permitted: the client address 192.0.2.7 is not in the ranges allowed by rule ${id}.`,
    ],
  ];

  it.each(cases)(
    'denies with its own words and its id, and passes again when it is removed: %j',
    async (create, message) => {
      const id = rule('key', create);
      const answer = await chat(gateway, hello(), from('192.0.2.7'));

      expect([answer.status, answer.json]).toEqual([403, denied(message(id))]);

      removeRule(gateway, 'key', id);
      added = [];
      expect((await chat(gateway, hello(), from('192.0.2.7'))).status).toBe(200);
    },
  );

  it('names the price that a pricing rule finds too high', async () => {
    const id = rule('key', { ruleType: 'allow_pricing', ruleValue: { maxOutputPrice: '3.5' } });

    const answer = await chat(gateway, hello());

    expect([answer.status, answer.json]).toEqual([
      403,
      denied(
        `Access denied: pricing constraint exceeded: input price 1 USD per million tokens, output price 4 USD per million tokens and pricing type paid are not allowed by rule ${id}.`,
      ),
    ]);
  });

  it('names all allow rules of its kind when none matches', async () => {
    const ids = [
      rule('key', { ruleType: 'allow_models', ruleValue: { models: ['a'] } }),
      rule('key', { ruleType: 'allow_models', ruleValue: { models: ['b'] } }),
    ];

    const answer = await chat(gateway, hello());

    expect(answer.json).toEqual(
      denied(
        `Access denied: model not allowed: sandbox-paid is not among the models allowed by rules ${ids.join(', ')}.`,
      ),
    );
  });
});

describe('an unknown client address', () => {
  it.each(['allow_ip_cidrs', 'deny_ip_cidrs'] as const)('is denied while an %s rule is in force', async (ruleType) => {
    const id = rule('key', { ruleType, ruleValue: { ipCidrs: ['192.0.2.0/24'] } });

    const answer = await chat(gateway, hello());

    expect([answer.status, answer.json]).toEqual([
      403,
      denied(
        `Access denied: IP not permitted: the client address is unknown, and rule ${id} cannot be checked without it.`,
      ),
    ]);
    expect(callRow(gateway, answer).clientAddress).toBeNull();
  });

  it('passes while the only IP rule is in report mode', async () => {
    rule('key', { ruleType: 'deny_ip_cidrs', ruleValue: { ipCidrs: ['192.0.2.0/24'] }, mode: 'report' });

    expect((await chat(gateway, hello())).status).toBe(200);
  });
});

describe('a rule of another scope', () => {
  it.each([
    ['member', ' This is an organization member IAM rule set by the org admin.'],
    ['organization', ' This is an organization IAM rule set by the org admin.'],
  ] as const)('denies too, and the %s rule says whose it is', async (scope, origin) => {
    const id = rule(scope, { ruleType: 'deny_models', ruleValue: { models: ['sandbox-paid'] } });

    const answer = await chat(gateway, hello());

    expect([answer.status, answer.json]).toEqual([
      403,
      denied(`Access denied: model not allowed: sandbox-paid is denied by rule ${id}.${origin}`),
    ]);
  });

  it('is a ceiling: a rule of the key cannot lift it', async () => {
    const id = rule('member', { ruleType: 'allow_models', ruleValue: { models: ['sandbox-free'] } });
    rule('key', { ruleType: 'allow_models', ruleValue: { models: ['sandbox-paid'] } });

    const answers = [await chat(gateway, hello()), await chat(gateway, hello({ model: 'sandbox-free' }))];

    expect(answers.map(({ status }) => status)).toEqual([403, 403]);
    expect(answers[0]?.text).toContain(id);
  });
});

describe("a rule that names a model by its provider's own id", () => {
  const NAMED = 'dear/birds/swift-2026';

  it.each(['birds--swift-2026', 'dear/birds--swift-2026', NAMED])('denies a call of %s', async (model) => {
    const id = rule('key', { ruleType: 'deny_models', ruleValue: { models: [NAMED] } });

    const answer = await chat(gateway, hello({ model }));

    expect([answer.status, answer.json]).toEqual([
      403,
      denied(`Access denied: model not allowed: ${NAMED} is denied by rule ${id}.`),
    ]);
  });

  it('permits it, and nothing else', async () => {
    upstream.begin(json(completion('Hi')));
    rule('key', { ruleType: 'allow_models', ruleValue: { models: [NAMED] } });

    const answers = [
      await chat(gateway, hello({ model: NAMED })),
      await chat(gateway, hello({ model: 'dear/shared' })),
    ];

    expect(answers.map(({ status }) => status)).toEqual([200, 403]);
    expect(upstream.received.map(({ json: sent }) => Object(sent).model)).toEqual(['birds/swift-2026']);
  });

  it('means it by a prefix of that name too', async () => {
    upstream.begin(json(completion('Hi')));
    rule('key', { ruleType: 'deny_models', ruleValue: { models: ['dear/birds/*'] } });

    const answers = [
      await chat(gateway, hello({ model: 'birds--swift-2026' })),
      await chat(gateway, hello({ model: 'dear/shared' })),
    ];

    expect(answers.map(({ status }) => status)).toEqual([403, 200]);
  });
});

describe('a denial', () => {
  it('is on record with its decision before it is answered', async () => {
    const id = rule('key', { ruleType: 'deny_models', ruleValue: { models: ['sandbox-paid'] } });

    const answer = await chat(gateway, hello());

    const row = callRow(gateway, answer);
    expect([row.state, row.statusCode, row.errorCode, row.cost, row.decisionId]).toEqual([
      'denied',
      403,
      'permission_denied',
      0n,
      answer.headers['x-decision-id'],
    ]);
    const decision = decisionRows(gateway).find((each) => each.id === row.decisionId);
    expect([decision?.outcome, JSON.parse(decision?.violationsJson ?? '')]).toEqual([
      'deny',
      [
        {
          scope: 'key',
          kind: 'models',
          effect: 'deny',
          candidate: 'sandbox/sandbox-paid',
          ruleIds: [id],
          values: ['sandbox-paid'],
        },
      ],
    ]);
  });

  it('tells by which policy and which revision of the rules it was decided', async () => {
    const before = await chat(gateway, hello());
    rule('key', { ruleType: 'deny_models', ruleValue: { models: ['sandbox-paid'] } });
    const after = await chat(gateway, hello());

    const [bundle, revision] = String(before.headers['x-policy-revision']).split('.');
    expect(after.headers['x-policy-revision']).toBe(`${bundle}.${Number(revision) + 1}`);
  });

  it('says what its rules are called, in whichever scope, where they are called anything', async () => {
    const models = (scope: RuleScope, description: string | null) =>
      rule(scope, { ruleType: 'allow_models', ruleValue: { models: ['sandbox-free'] }, description });
    const [first, second] = [models('member', 'Only what is free (ask Ada)'), models('member', null)];

    const answer = await chat(gateway, hello());

    expect([answer.status, answer.json]).toEqual([
      403,
      denied(
        `Access denied: model not allowed: sandbox-paid is not among the models allowed by rules ${first} (Only what is free (ask Ada)), ${second}. ` +
          'This is an organization member IAM rule set by the org admin.',
      ),
    ]);
  });

  it('sends nothing upstream', async () => {
    upstream.begin(() => {
      throw new Error('called');
    });
    rule('key', { ruleType: 'deny_models', ruleValue: { models: ['shared'] } });

    expect((await chat(gateway, hello({ model: 'shared' }))).status).toBe(403);
    expect(upstream.received).toEqual([]);
  });

  it('of a streamed request is the same plain answer', async () => {
    rule('key', { ruleType: 'deny_models', ruleValue: { models: ['sandbox-paid'] } });

    const answer = await chat(gateway, hello({ stream: true }));

    expect([answer.status, answer.headers['content-type']]).toEqual([403, 'application/json; charset=utf-8']);
    expect(callRow(gateway, answer).stream).toBe(1);
  });
});

describe('a rule that leaves some candidate', () => {
  it('narrows the call to what it permits', async () => {
    upstream.begin(json(completion('Hi')));
    rule('key', { ruleType: 'deny_providers', ruleValue: { providers: ['cheap'] } });

    const { metadata } = completionOf(await chat(gateway, hello({ model: 'shared' })));

    expect(metadata.used_provider).toBe('dear');
  });
});

describe('a rule in report mode', () => {
  it('never changes the answer; what it would have done is recorded', async () => {
    const id = rule('key', { ruleType: 'deny_models', ruleValue: { models: ['sandbox-paid'] }, mode: 'report' });

    const answer = await chat(gateway, hello());

    expect(answer.status).toBe(200);
    const decision = decisionRows(gateway).find((each) => each.id === answer.headers['x-decision-id']);
    expect([decision?.outcome, JSON.parse(decision?.shadowJson ?? '')]).toEqual([
      'permit',
      { permitted: [], would_deny: [id], would_allow: [] },
    ]);
  });

  it('that is inactive does nothing', async () => {
    rule('key', { ruleType: 'deny_models', ruleValue: { models: ['sandbox-paid'] }, status: 'inactive' });

    expect((await chat(gateway, hello())).status).toBe(200);
    expect(callRows(gateway).at(-1)?.state).toBe('settled');
  });
});
