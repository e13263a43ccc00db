// POST /v1/moderations: rules on providers and addresses apply, rules on models and prices do not.
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { RuleCreate } from '../../../src/generated/types.ts';
import { addRule, type RuleScope, removeRule, startGateway, type TestGateway } from '../../support/gateway.ts';
import { moderate } from '../../support/images.ts';
import { callRow } from '../../support/rows.ts';

let gateway: TestGateway;
let added: { scope: RuleScope; id: string }[] = [];

beforeAll(async () => {
  gateway = await startGateway();
});

afterEach(() => {
  for (const { scope, id } of added) removeRule(gateway, scope, id);
  added = [];
});

afterAll(() => gateway.close());

function rule(scope: RuleScope, create: RuleCreate): string {
  const { id } = addRule(gateway, scope, create);
  added.push({ scope, id });
  return id;
}

const ask = () => moderate(gateway, { input: 'x' }, { headers: [['x-forwarded-for', '192.0.2.7']] });

describe('a rule that denies', () => {
  it.each<[RuleCreate, (id: string) => string]>([
    [
      { ruleType: 'deny_providers', ruleValue: { providers: ['sandbox'] } },
      (id) => `provider blocked: sandbox is denied by rule ${id}.`,
    ],
    [
      { ruleType: 'allow_providers', ruleValue: { providers: ['acme'] } },
      (id) => `provider blocked: sandbox is not among the providers allowed by rule ${id}.`,
    ],
    [
      { ruleType: 'deny_ip_cidrs', ruleValue: { ipCidrs: ['192.0.2.0/24'] } },
      (id) => `IP not permitted: the client address lies in 192.0.2.0/24, denied by rule ${id}.`,
    ],
    [
      { ruleType: 'allow_ip_cidrs', ruleValue: { ipCidrs: ['198.51.100.0/24'] } },
      (id) => `IP not permitted: the client address 192.0.2.7 is not in the ranges allowed by rule ${id}.`,
    ],
  ])('a provider or an address does so here, on record: %j', async (create, message) => {
    const id = rule('key', create);

    const answer = await ask();

    expect([answer.status, answer.json]).toEqual([
      403,
      {
        error: {
          message: `Access denied: ${message(id)}`,
          type: 'invalid_request_error',
          param: null,
          code: 'permission_denied',
        },
      },
    ]);
    expect(callRow(gateway, answer)).toMatchObject({ state: 'denied', action: 'moderation', statusCode: 403 });
  });

  it.each<RuleCreate>([
    { ruleType: 'deny_models', ruleValue: { models: ['*'] } },
    { ruleType: 'allow_models', ruleValue: { models: ['other'] } },
    { ruleType: 'deny_pricing', ruleValue: { pricingType: 'free' } },
    { ruleType: 'allow_pricing', ruleValue: { pricingType: 'paid' } },
  ])('a model or a price does not: %j', async (create) => {
    rule('key', create);
    rule('member', create);

    expect((await ask()).status).toBe(200);
  });
});
