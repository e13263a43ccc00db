// The sandbox costs nothing as soon as another provider has a credential (src/config/README.md, "The sandbox").
import { afterEach, describe, expect, it } from 'vitest';
import { createProviderKey } from '../../../src/admin/providers/provider-keys.ts';
import { createProject } from '../../../src/admin/tenants/projects.ts';
import { createCatalog } from '../../../src/catalog/catalog.ts';
import { systemClock } from '../../../src/domain/time.ts';
import { loadSecrets } from '../../../src/store/secrets/secrets.ts';
import { bearer, chat, completionOf, errorOf, hello } from '../../support/chat.ts';
import { addKey, addRule, startGateway, type TestGateway } from '../../support/gateway.ts';
import { addOwnModels } from '../../support/own-models.ts';
import { send } from '../../support/request.ts';
import { keySums } from '../../support/rows.ts';

let gateway: TestGateway;

afterEach(() => gateway.close());

const actor = () => ({ kind: 'cli', organizationId: gateway.firstRun.organizationId }) as const;
const catalog = createCatalog({ sandbox: true, upstreams: [], clock: systemClock });
const addProviderKey = (provider: string, projectId: string | null = null): string => {
  const [encryptionKey] = loadSecrets(gateway.dataDir, { create: false }).encryptionKeys;
  const body = { provider, label: 'Main', token: 'sk-none', projectId };
  const write = { now: Date.now(), catalog, encryptionKey, allowPrivateUpstreams: [] };
  return createProviderKey(gateway.db, actor(), body, write).providerKey.id;
};

const costOf = async (options?: Parameters<typeof chat>[2]): Promise<number | undefined> =>
  completionOf(await chat(gateway, hello(), options)).usage.cost;

describe('a call of the sandbox', () => {
  it('costs its price, and counts for limits, while nothing else can be called', async () => {
    gateway = await startGateway();
    expect(await costOf()).toBeGreaterThan(0);
    const { token } = addKey(gateway, { usageLimit: '0.000001' });
    expect(errorOf(await chat(gateway, hello(), { token })).code).toBe('usage_limit_reached');
  });

  it.each([
    ['the operator has a credential', { OPENAI_API_KEY: 'sk-none' }],
    [
      'there is an upstream that asks for none',
      { UPSTREAM_ACME_BASE_URL: 'http://127.0.0.1:1/v1', UPSTREAM_ACME_MODELS: 'x' },
    ],
  ])('costs nothing in answers, sums and limits where %s', async (_, env) => {
    gateway = await startGateway(env);
    expect(await costOf()).toBe(0);
    const { id, token } = addKey(gateway, { usageLimit: '0.000001' });
    const options = { token };
    expect([await costOf(options), await costOf(options)]).toEqual([0, 0]);
    const { usage, reserved } = keySums(gateway, id);
    expect([Number(usage), Number(reserved)]).toEqual([0, 0]);
    const booked = gateway.db.connection.prepare('SELECT DISTINCT cost, state FROM calls').all();
    expect(booked).toEqual([{ cost: 0, state: 'settled' }]);
  });

  it('costs nothing once the organization has a key of its own, in that project alone where the key is for one', async () => {
    gateway = await startGateway();
    const project = createProject(gateway.db, actor(), { name: 'Other' }, Date.now()).project.id;
    const { token } = addKey(gateway, { projectId: project });
    addProviderKey('openai', project);
    expect([await costOf({ token }), (await costOf()) === 0]).toEqual([0, false]);
    addProviderKey('anthropic');
    expect(await costOf()).toBe(0);
  });

  it('costs nothing once the organization has a provider that asks for no key', async () => {
    gateway = await startGateway();
    addOwnModels(gateway.db, gateway.firstRun, 'https://models.example', [], { large: {} });
    expect(await costOf()).toBe(0);
  });

  it('costs its price where the only other key is one for the sandbox, cannot be opened, or is disabled', async () => {
    gateway = await startGateway();
    addProviderKey('sandbox');
    const sealed = addProviderKey('openai');
    gateway.db.connection.prepare("UPDATE provider_keys SET ciphertext = 'AAAA' WHERE id = ?").run(sealed);
    const disabled = addProviderKey('anthropic');
    gateway.db.connection.prepare("UPDATE provider_keys SET status = 'inactive' WHERE id = ?").run(disabled);
    expect(await costOf()).toBeGreaterThan(0);
  });

  it('keeps its price in lists and for rules', async () => {
    gateway = await startGateway({ OPENAI_API_KEY: 'sk-none' });
    const list = await send(gateway.origin, {
      path: '/v1/models/sandbox-paid',
      headers: [bearer(gateway.firstRun.gatewayKey)],
    });
    expect(list.json).toMatchObject({ pricing: { prompt: '0.000001', completion: '0.000004' } });
    addRule(gateway, 'key', { ruleType: 'allow_pricing', ruleValue: { pricingType: 'free' } });
    expect(errorOf(await chat(gateway, hello())).code).toBe('permission_denied');
  });
});
