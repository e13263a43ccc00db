// Threat: a custom provider is deleted and created again under its old name, at another server, and inherits what was remembered.
// Defence: what is remembered belongs to the row of the model and to the state of its provider, never to the name alone.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Actor } from '../../src/admin/audit/audit-trail.ts';
import { createCustomModel, deleteCustomModel } from '../../src/admin/providers/custom-models.ts';
import { changeCustomProvider, deleteCustomProvider } from '../../src/admin/providers/custom-providers.ts';
import { createProviderKey } from '../../src/admin/providers/provider-keys.ts';
import { createCatalog } from '../../src/catalog/catalog.ts';
import { systemClock } from '../../src/domain/time.ts';
import { loadSecrets } from '../../src/store/secrets/secrets.ts';
import { chat, completionOf, errorOf, hello } from '../support/chat.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { addOwnModels, FLAT } from '../support/own-models.ts';
import { completion, failure, json, startUpstream, type TestUpstream } from '../support/upstream.ts';

let first: TestUpstream;
let second: TestUpstream;
let gateway: TestGateway;
let provider: string;

const actor = (): Actor => ({ kind: 'cli', organizationId: gateway.firstRun.organizationId });

/** Adds the provider `own` with the model `own/flat`. */
const add = (upstream: TestUpstream, more: object = {}): string =>
  addOwnModels(
    gateway.db,
    gateway.firstRun,
    upstream.origin,
    gateway.config.allowPrivateUpstreams,
    { flat: FLAT },
    more,
  );

const remove = (): void => void deleteCustomProvider(gateway.db, actor(), provider, Date.now());

const ask = () => chat(gateway, hello({ model: 'own/flat' }));

const saidBy = async (): Promise<string | null | undefined> => completionOf(await ask()).choices[0]?.message.content;

beforeAll(async () => {
  first = await startUpstream();
  second = await startUpstream();
});

beforeEach(async () => {
  const hosts = [first, second].map(({ origin }) => new URL(origin).host).join();
  gateway = await startGateway({ ALLOW_PRIVATE_UPSTREAMS: hosts }, { caching: true });
  first.begin(json(completion('I am the first')));
  second.begin(json(completion('I am the second')));
});

afterEach(() => gateway.close());

afterAll(async () => {
  await first.close();
  await second.close();
});

describe('a provider that is created again under its old name', () => {
  it('is not answered from what the former one said', async () => {
    provider = add(first);
    expect([await saidBy(), await saidBy(), first.received.length]).toEqual(['I am the first', 'I am the first', 1]);

    remove();
    provider = add(second);

    expect([await saidBy(), await saidBy(), second.received.length]).toEqual(['I am the second', 'I am the second', 1]);
  });

  it('at the same address neither', async () => {
    provider = add(first);
    await saidBy();

    remove();
    provider = add(first);
    await saidBy();

    expect(first.received).toHaveLength(2);
  });

  it('has none of the former one’s keys', async () => {
    provider = add(first, { keyless: false });
    const body = { provider: 'custom:own', label: 'Own', token: 'secret-of-the-first' };
    const [encryptionKey] = loadSecrets(gateway.dataDir, { create: false }).encryptionKeys;
    const catalog = createCatalog({ sandbox: true, upstreams: [], clock: systemClock });
    const { allowPrivateUpstreams } = gateway.config;
    createProviderKey(gateway.db, actor(), body, { now: Date.now(), catalog, encryptionKey, allowPrivateUpstreams });
    await saidBy();
    expect(first.received[0]?.headers.authorization).toBe('Bearer secret-of-the-first');

    remove();
    provider = add(second, { keyless: false });
    const answer = await ask();

    expect([answer.status, errorOf(answer).code]).toEqual([404, 'model_not_found']);
    expect(second.received).toEqual([]);
  });

  it('is not at rest because the former one failed', async () => {
    provider = add(first);
    first.begin(failure(500, 'x'));
    for (let n = 0; n < 3; n += 1) await ask();
    const resting = async () =>
      /portcullis_resting_targets (\d+)/.exec(await (await fetch(`${gateway.management}/metrics`)).text())?.[1];
    expect(await resting()).toBe('1');

    remove();
    provider = add(first);
    first.begin(json(completion('I am well')));

    expect(await saidBy()).toBe('I am well');
    first.begin(failure(500, 'x'));
    await chat(gateway, hello({ model: 'own/flat', user: 'other' }));
    expect(await resting()).toBe('1');
  });
});

describe('a provider that moves to another server', () => {
  it('is not answered from what the old server said', async () => {
    provider = add(first);
    await saidBy();

    const { allowPrivateUpstreams } = gateway.config;
    const catalog = createCatalog({ sandbox: true, upstreams: [], clock: systemClock });
    const write = { now: Date.now() + 1, catalog, allowPrivateUpstreams };
    changeCustomProvider(gateway.db, actor(), provider, { baseUrl: `${second.origin}/v1` }, write);

    expect(await saidBy()).toBe('I am the second');
  });
});

describe('a model that is added again under its old name', () => {
  it('is not answered from what the former one said', async () => {
    provider = add(first);
    await saidBy();
    const model = gateway.db.connection.prepare<[], string>('SELECT id FROM custom_models').pluck().get() ?? '';

    deleteCustomModel(gateway.db, actor(), model, Date.now());
    createCustomModel(gateway.db, actor(), { customProviderId: provider, model: 'flat', ...FLAT }, Date.now());
    first.begin(json(completion('I am another')));

    expect(await saidBy()).toBe('I am another');
  });
});
