// POST /v1/chat/completions: with which credentials, and at whose provider (src/core/README.md, "order").
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Actor } from '../../../src/admin/audit/audit-trail.ts';
import { createCustomModel } from '../../../src/admin/providers/custom-models.ts';
import { createCustomProvider } from '../../../src/admin/providers/custom-providers.ts';
import { changeProviderKey, createProviderKey, deleteProviderKey } from '../../../src/admin/providers/provider-keys.ts';
import { createCatalog } from '../../../src/catalog/catalog.ts';
import { systemClock } from '../../../src/domain/time.ts';
import type { RuleCreate } from '../../../src/generated/types.ts';
import { loadSecrets } from '../../../src/store/secrets/secrets.ts';
import { bearer, chat, completionOf, errorOf, eventsOf, hello } from '../../support/chat.ts';
import { addRule, startGateway, type TestGateway } from '../../support/gateway.ts';
import { send } from '../../support/request.ts';
import { callRow } from '../../support/rows.ts';
import {
  chunk,
  completion,
  cutAfter,
  events,
  failure,
  json,
  type Received,
  startUpstream,
  type TestUpstream,
  USAGE_CHUNK,
} from '../../support/upstream.ts';

const MODEL = 'openai/gpt-4o-mini';
const catalog = createCatalog({ sandbox: true, upstreams: [], clock: systemClock });

let upstream: TestUpstream;
let gateway: TestGateway;
let actor: Actor;

async function start(env: Readonly<Record<string, string>> = {}): Promise<void> {
  gateway = await startGateway({
    OPENAI_BASE_URL: `${upstream.origin}/v1`,
    ALLOW_PRIVATE_UPSTREAMS: new URL(upstream.origin).host,
    ...env,
  });
  actor = { kind: 'cli', organizationId: gateway.firstRun.organizationId };
}

beforeEach(async () => {
  upstream = await startUpstream();
});

afterEach(async () => {
  await gateway.close();
  await upstream.close();
});

const write = () => ({
  now: Date.now(),
  encryptionKey: loadSecrets(gateway.dataDir, { create: false }).encryptionKeys[0],
  catalog,
  allowPrivateUpstreams: gateway.config.allowPrivateUpstreams,
});

const addProviderKey = (label: string, more: object = {}): string =>
  createProviderKey(gateway.db, actor, { label, provider: 'openai', token: `sk-${label}`, ...more }, write())
    .providerKey.id;

/** The credentials that the upstream was shown, in their order. */
const shown = (): (string | undefined)[] => upstream.received.map(({ headers }) => headers.authorization);

const tokenOf = ({ headers }: Received): string | undefined => headers.authorization?.replace('Bearer ', '');

describe("a customer's own provider key", () => {
  it('makes the models of a provider callable for which the service has no key', async () => {
    await start();
    const before = await chat(gateway, hello({ model: MODEL }));
    const id = addProviderKey('ours');
    const answer = await chat(gateway, hello({ model: MODEL }));

    const { metadata } = completionOf(answer);
    const row = callRow(gateway, answer);
    expect([before.status, errorOf(before).code]).toEqual([404, 'model_not_found']);
    expect(shown()).toEqual(['Bearer sk-ours']);
    expect(metadata.routing).toEqual([
      {
        provider: 'openai',
        model: 'gpt-4o-mini',
        region: 'global',
        status_code: 200,
        error_type: 'none',
        succeeded: true,
        apiKeyHash: expect.stringMatching(/^[0-9a-f]{16}$/),
        credentialSource: 'byok',
        providerKeyId: id,
        providerKeyLabel: 'ours',
        logId: row.id,
      },
    ]);
    expect(row).toMatchObject({ providerId: 'openai', providerKeyId: id });
  });

  it("comes before the service's, which stands in when it is refused", async () => {
    await start({ OPENAI_API_KEY: 'sk-service' });
    addProviderKey('ours');
    upstream.begin((response, received) =>
      tokenOf(received) === 'sk-ours'
        ? failure(401, 'Incorrect API key provided: sk-ours')(response, received)
        : json(completion('Hello'))(response, received),
    );

    const { metadata } = completionOf(await chat(gateway, hello({ model: MODEL })));

    expect(metadata.routing.map(({ credentialSource, error_type }) => [credentialSource, error_type])).toEqual([
      ['byok', 'credential'],
      ['service', 'none'],
    ]);
    expect(shown()).toEqual(['Bearer sk-ours', 'Bearer sk-service']);
  });

  it('is one of several, tried in their order', async () => {
    await start();
    addProviderKey('one');
    addProviderKey('two');
    addProviderKey('three', { position: 1 });
    upstream.begin(failure(429, 'Slow down.'));

    const answer = await chat(gateway, hello({ model: MODEL }));

    expect([answer.status, shown()]).toEqual([429, ['Bearer sk-three', 'Bearer sk-one', 'Bearer sk-two']]);
  });

  it('is used in its project alone when it names one', async () => {
    await start();
    const { organizationId } = gateway.firstRun;
    gateway.db.connection
      .prepare(
        "INSERT INTO projects (id, organizationId, name, createdAt, updatedAt) VALUES ('proj_2', ?, 'Two', 1, 1)",
      )
      .run(organizationId);
    addProviderKey('theirs', { projectId: 'proj_2' });
    expect((await chat(gateway, hello({ model: MODEL }))).status).toBe(404);
  });

  it('is out of use when it is inactive or deleted, and from the next call on', async () => {
    await start();
    const id = addProviderKey('ours');
    const statuses = [(await chat(gateway, hello({ model: MODEL }))).status];
    changeProviderKey(gateway.db, actor, id, { status: 'inactive' }, write());
    statuses.push((await chat(gateway, hello({ model: MODEL }))).status);
    changeProviderKey(gateway.db, actor, id, { status: 'active' }, write());
    statuses.push((await chat(gateway, hello({ model: MODEL }))).status);
    deleteProviderKey(gateway.db, actor, id, Date.now());
    statuses.push((await chat(gateway, hello({ model: MODEL }))).status);
    expect(statuses).toEqual([200, 404, 200, 404]);
  });

  it('withdrawn while a call runs is not tried any more', async () => {
    await start();
    addProviderKey('one');
    const two = addProviderKey('two');
    upstream.begin((response, received) => {
      deleteProviderKey(gateway.db, actor, two, Date.now());
      return failure(500, 'x')(response, received);
    });
    const answer = await chat(gateway, hello({ model: MODEL }));
    expect([answer.status, shown()]).toEqual([502, ['Bearer sk-one']]);
  });

  it('that has no money left is the caller’s business: 402', async () => {
    await start();
    addProviderKey('ours');
    upstream.begin(failure(402, 'Your key sk-ours has no credits.'));
    const answer = await chat(gateway, hello({ model: MODEL }));
    expect([answer.status, errorOf(answer)]).toEqual([
      402,
      {
        message: 'The provider asks for payment on the credential in use.',
        type: 'invalid_request_error',
        param: null,
        code: 'billing_error',
      },
    ]);
  });

  it("is an error event when a stream of it breaks, without the provider's text", async () => {
    await start();
    addProviderKey('ours');
    upstream.begin(cutAfter(chunk({ content: 'So f' })));
    const { chunks, error } = eventsOf((await chat(gateway, hello({ model: MODEL, stream: true }))).text);
    expect([chunks.length, error?.code]).toEqual([1, 'upstream_error']);
  });

  it('is nothing that the ledger, the log or an answer shows', async () => {
    await start();
    addProviderKey('ours');
    upstream.begin(failure(403, 'Key sk-ours may not.'));
    const answer = await chat(gateway, hello({ model: MODEL }));
    const kept = gateway.db.connection.prepare('SELECT * FROM calls').all();
    expect(answer.text + JSON.stringify(answer.headers) + JSON.stringify(kept, (_, v) => String(v))).not.toContain(
      'sk-ours',
    );
  });
});

describe('a custom provider', () => {
  function addProvider(name: string, more: object = {}): void {
    const body = { name, baseUrl: `${upstream.origin}/own/v1`, ...more };
    const { customProvider } = createCustomProvider(gateway.db, actor, body, write());
    createCustomModel(
      gateway.db,
      actor,
      {
        customProviderId: customProvider.id,
        model: 'org/llama:8b',
        pricing: { prompt: '0.000001', completion: '0.000002' },
      },
      Date.now(),
    );
  }

  it('serves its models under `<custom>/<model>`, at the prices that are stated', async () => {
    await start();
    addProvider('acme');
    const keyId = addProviderKey('ours', { provider: 'custom:acme' });

    const answer = completionOf(await chat(gateway, hello({ model: 'acme/org/llama:8b' })));

    const [received] = upstream.received;
    expect([received?.path, received?.json]).toMatchObject(['/own/v1/chat/completions', { model: 'org/llama:8b' }]);
    expect(answer).toMatchObject({
      model: 'org/llama:8b',
      usage: { cost: 0.00002 },
      metadata: {
        requested_model: 'acme/org/llama:8b',
        requested_provider: 'acme',
        used_provider: 'acme',
        used_model: 'org/llama:8b',
        routing: [{ credentialSource: 'byok', providerKeyId: keyId }],
      },
    });
  });

  it('that asks for no key needs none', async () => {
    await start();
    addProvider('acme', { keyless: true });
    expect((await chat(gateway, hello({ model: 'acme/org/llama:8b' }))).status).toBe(200);
    expect(shown()).toEqual([undefined]);
  });

  it('without a key cannot be called', async () => {
    await start();
    addProvider('acme');
    expect((await chat(gateway, hello({ model: 'acme/org/llama:8b' }))).status).toBe(404);
  });

  it('serves what is registered, and nothing else', async () => {
    await start();
    addProvider('acme', { keyless: true });
    const answer = await chat(gateway, hello({ model: 'acme/other' }));
    expect([answer.status, errorOf(answer).message]).toEqual([404, 'The model `acme/other` does not exist.']);
  });

  it('is judged by `custom`, by `custom:<name>` and by the full name of its model', async () => {
    await start();
    addProvider('acme', { keyless: true });
    const rules: RuleCreate[] = [
      { ruleType: 'deny_providers', ruleValue: { providers: ['custom'] } },
      { ruleType: 'deny_providers', ruleValue: { providers: ['custom:acme'] } },
      { ruleType: 'deny_models', ruleValue: { models: ['acme/org/llama:8b'] } },
    ];
    for (const rule of rules) {
      const { id } = addRule(gateway, 'key', rule);
      const answer = await chat(gateway, hello({ model: 'acme/org/llama:8b' }));
      expect([answer.status, errorOf(answer).message.includes(id)]).toEqual([403, true]);
      gateway.db.connection.prepare("UPDATE rules SET status = 'inactive' WHERE id = ?").run(id);
    }
  });

  it('cannot reach an address that nobody has opened', async () => {
    await start();
    addProvider('acme', { keyless: true });
    gateway.db.connection.prepare('UPDATE custom_providers SET baseUrl = ?').run('http://127.0.0.1:9/v1');
    const answer = await chat(gateway, hello({ model: 'acme/org/llama:8b' }));
    expect([answer.status, errorOf(answer).message]).toEqual([
      502,
      'The connection to the provider failed: the address is not public.',
    ]);
    expect(upstream.received).toEqual([]);
  });

  it('stands in the list of those who may call it', async () => {
    await start();
    addProvider('acme', { keyless: true });
    const path = '/v1/models?mapped=true';
    const headers = [bearer(gateway.firstRun.gatewayKey)];
    const { json: list } = await send(gateway.origin, { path, headers });
    const { json: anonymous } = await send(gateway.origin, { path });
    const entry = {
      id: 'acme/org/llama:8b',
      owned_by: 'acme',
      pricing: { prompt: '0.000001', completion: '0.000002' },
    };
    expect(list).toMatchObject({ data: expect.arrayContaining([expect.objectContaining(entry)]) });
    expect(JSON.stringify(anonymous)).not.toContain('acme');
  });

  it('streams', async () => {
    await start();
    addProvider('acme', { keyless: true });
    upstream.begin(events(chunk({ content: 'Hi' }, 'stop'), USAGE_CHUNK));
    const { chunks } = eventsOf((await chat(gateway, hello({ model: 'acme/org/llama:8b', stream: true }))).text);
    expect(chunks.at(-1)).toMatchObject({ usage: { cost: 0.00002 }, metadata: { used_provider: 'acme' } });
  });
});
