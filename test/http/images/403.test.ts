// POST /v1/images/generations: a request that an IAM rule refuses.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { RuleCreate } from '../../../src/generated/types.ts';
import { addRule, type RuleScope, removeRule, startGateway, type TestGateway } from '../../support/gateway.ts';
import { draw, fox, imagesOf, pictured } from '../../support/images.ts';
import { callRow } from '../../support/rows.ts';
import { startUpstream, type TestUpstream, upstreamEnv } from '../../support/upstream.ts';

let upstream: TestUpstream;
let gateway: TestGateway;
let added: { scope: RuleScope; id: string }[] = [];

beforeAll(async () => {
  upstream = await startUpstream();
  gateway = await startGateway(upstreamEnv('acme', upstream.origin, 'sandbox-image-plus', 'sandbox-image-plus=0/0'));
});

beforeEach(() => upstream.begin(pictured()));

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

const MAX = 'sandbox-image-max';

const denied = (message: string) => ({
  error: { message, type: 'invalid_request_error', param: null, code: 'permission_denied' },
});

describe('each kind of rule', () => {
  it.each<[RuleCreate, (id: string) => string]>([
    [
      { ruleType: 'deny_models', ruleValue: { models: [MAX] } },
      (id) => `Access denied: model not allowed: ${MAX} is denied by rule ${id}.`,
    ],
    [
      { ruleType: 'allow_models', ruleValue: { models: ['sandbox-image-plus'] } },
      (id) => `Access denied: model not allowed: ${MAX} is not among the models allowed by rule ${id}.`,
    ],
    [
      { ruleType: 'deny_providers', ruleValue: { providers: ['sandbox'] } },
      (id) => `Access denied: provider blocked: sandbox is denied by rule ${id}.`,
    ],
    [
      { ruleType: 'deny_pricing', ruleValue: { pricingType: 'paid' } },
      (id) => `Access denied: pricing constraint exceeded: pricing type paid is denied by rule ${id}.`,
    ],
    [
      { ruleType: 'deny_ip_cidrs', ruleValue: { ipCidrs: ['192.0.2.0/24'] } },
      (id) => `Access denied: IP not permitted: the client address lies in 192.0.2.0/24, denied by rule ${id}.`,
    ],
  ])('denies with its own words and its id, on record, and passes when it is removed: %j', async (create, message) => {
    const id = rule('key', create);
    const options = { headers: [['x-forwarded-for', '192.0.2.7']] as const };

    const answer = await draw(gateway, fox({ model: MAX }), options);

    expect([answer.status, answer.json]).toEqual([403, denied(message(id))]);
    expect(callRow(gateway, answer)).toMatchObject({
      state: 'denied',
      action: 'image',
      errorCode: 'permission_denied',
    });
    removeRule(gateway, 'key', id);
    added = [];
    expect((await draw(gateway, fox({ model: MAX }), options)).status).toBe(200);
  });
});

describe('a denied provider', () => {
  it('leaves the model to the other one, also where it is more expensive', async () => {
    const before = imagesOf(await draw(gateway, fox()));
    rule('organization', { ruleType: 'deny_providers', ruleValue: { providers: ['acme'] } });
    const after = imagesOf(await draw(gateway, fox()));

    expect([before.metadata.used_provider, after.metadata.used_provider]).toEqual(['acme', 'sandbox']);
    expect([upstream.received.length, after.metadata.routing.length]).toEqual([1, 1]);
  });
});
