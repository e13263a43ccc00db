// What the analyses call reached is what the gateway lists for the key, and serves: by the running server's configuration.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { validator } from '../../../../src/lib/schemas.ts';
import { addRule, startGateway, type TestGateway } from '../../../support/gateway.ts';

const validateAccessReport = validator('AccessReport');
const validateModelList = validator('ModelList');

let gateway: TestGateway;

async function ask(origin: string, method: string, path: string, token: string, body?: object): Promise<unknown> {
  const response = await fetch(`${origin}${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const answer: unknown = await response.json();
  if (response.status >= 300) throw new Error(JSON.stringify(answer));
  return answer;
}

const manage = (method: string, path: string, body?: object): Promise<unknown> =>
  ask(gateway.management, method, `/v1/master/${path}`, gateway.firstRun.masterKey, body);

const idIn = (answer: unknown): string => /"id":"([^"]+)"/.exec(JSON.stringify(answer))?.[1] ?? '';

beforeAll(async () => {
  gateway = await startGateway({
    ANTHROPIC_API_KEY: 'sk-none',
    MISTRAL_BASE_URL: 'https://models.example/v1',
    UPSTREAM_OLLAMA_BASE_URL: 'http://127.0.0.1:9/v1',
    UPSTREAM_OLLAMA_MODELS: 'org/llama',
  });
  const custom = { baseUrl: 'https://models.example/v1', keyless: true };
  const acme = idIn(await manage('POST', 'custom-providers', { ...custom, name: 'acme' }));
  const vault = idIn(await manage('POST', 'custom-providers', { ...custom, name: 'vault', keyless: false }));
  await manage('POST', 'custom-models', { customProviderId: acme, model: 'house/own' });
  await manage('POST', 'custom-models', { customProviderId: vault, model: 'sealed' });
  await manage('POST', 'provider-keys', { provider: 'xai', label: 'Ours', token: 'sk-none' });
  addRule(gateway, 'key', { ruleType: 'deny_models', ruleValue: { models: ['sandbox-p*', 'claude-opus-*'] } });
});
afterAll(() => gateway.close());

it('holds what the model list holds, mapping by mapping', async () => {
  const list = await ask(gateway.origin, 'GET', '/v1/models?mapped=true', gateway.firstRun.gatewayKey);
  const table = await manage('GET', `keys/${gateway.keyId}/access`);
  if (!validateModelList(list) || !validateAccessReport(table)) throw new Error('neither a list nor a table');
  const reached = table.reached.map(({ provider, model }) => `${provider}/${model}`);
  expect(reached.sort()).toEqual(list.data.map(({ id }) => id).sort());
  expect(new Set(table.reached.map(({ provider }) => provider))).toEqual(
    new Set(['acme', 'anthropic', 'ollama', 'sandbox', 'xai']),
  );
});

it('is what a call is answered: by name, 404 for what has no credential', async () => {
  for (const model of ['sandbox-free', 'gpt-5', 'vault/sealed', 'mistral/none']) {
    const call = { model, messages: [{ role: 'user', content: 'Hello' }] };
    const answered = await ask(gateway.origin, 'POST', '/v1/chat/completions', gateway.firstRun.gatewayKey, call).then(
      () => ({ outcome: 'permit', message: null }),
      (error: Error) => ({ outcome: 'not_found', message: /"message":"(.*?)"/.exec(error.message)?.[1] }),
    );
    const explained = await manage('POST', 'policy/evaluate', { key: gateway.keyId, request: { model } }).then(
      (answer) => answer,
      (error: Error) => ({ outcome: 'not_found', reason: /"message":"(.*?)"/.exec(error.message)?.[1] }),
    );
    expect([model, explained]).toMatchObject([model, { outcome: answered.outcome, reason: answered.message }]);
  }
});
