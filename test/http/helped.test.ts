// Answers to callers who are nearly right name what they meant: another name of a model, another path, another key, another header.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { management } from '../../src/http/operations/management-operations.ts';
import { bearer, chat, errorOf, hello, JSON_TYPE, post } from '../support/chat.ts';
import { addKey, addRule, removeRule, startGateway, type TestGateway } from '../support/gateway.ts';
import { callTool } from '../support/mcp.ts';
import { send } from '../support/request.ts';
import { callRows } from '../support/rows.ts';

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(() => gateway.close());

const messageFor = async (model: string): Promise<string> => errorOf(await chat(gateway, hello({ model }))).message;

describe('a model that does not exist', () => {
  it.each([
    ['sandbox-paidd', 'sandbox-paid'],
    ['Sandbox-Free', 'sandbox-free'],
    ['sanbdox/sandbox-paid', 'sandbox/sandbox-paid'],
    ['openai/sandbox-pade', 'sandbox-paid'],
  ])('is answered with the nearest that the caller may use: %s', async (model, meant) => {
    expect(await messageFor(model)).toBe(`The model \`${model}\` does not exist. Did you mean \`${meant}\`?`);
    const tool = await callTool(gateway, 'chat', { model, messages: [{ role: 'user', content: 'Hello' }] });
    expect(tool.text).toContain(`Did you mean \`${meant}\`?`);
  });

  it('suggests none that is far away, that serves another purpose, or that has no credential', async () => {
    for (const model of ['llama', 'sandbox-moderatio', 'gpt-5.5-proo', 'constructor', '__proto__']) {
      expect(await messageFor(model)).toBe(`The model \`${model}\` does not exist.`);
    }
    const image = await send(gateway.origin, {
      method: 'POST',
      path: '/v1/images/generations',
      headers: [bearer(gateway.firstRun.gatewayKey), JSON_TYPE],
      body: JSON.stringify({ model: 'sandbox-image-pluss', prompt: 'A cat' }),
    });
    expect(errorOf(image).message).toContain('Did you mean `sandbox-image-plus`?');
  });

  it('suggests none that the rules deny', async () => {
    const rule = addRule(gateway, 'key', { ruleType: 'deny_models', ruleValue: { models: ['sandbox-paid'] } });
    const message = await messageFor('sandbox-paidd');
    removeRule(gateway, 'key', rule.id);
    expect(message).toBe('The model `sandbox-paidd` does not exist.');
  });

  it('is answered so by the list too, with a key and without', async () => {
    const path = '/v1/models/sandbox-paidd';
    for (const headers of [[], [bearer(gateway.firstRun.gatewayKey)]]) {
      const answer = await send(gateway.origin, { path, headers });
      expect([answer.status, errorOf(answer).message]).toEqual([
        404,
        'The model `sandbox-paidd` does not exist. Did you mean `sandbox-paid`?',
      ]);
    }
  });

  it.each([
    ['gpt-4', 'openai since 2026-10-23'],
    ['deepseek-v4-flash', 'deepseek since 2026-09-10, fireworks since 2026-09-25'],
  ])('any more at some provider is told before a credential is asked for: %s', async (model, where) => {
    expect(await messageFor(model)).toBe(
      `The model \`${model}\` is retired at ${where}, and no other provider of it has a credential for this project.`,
    );
  });

  it('opens no call', () => expect(callRows(gateway).filter(({ state }) => state === 'open')).toEqual([]));
});

describe('a path of a client for another server', () => {
  const messageAt = async (path: string, origin = gateway.origin): Promise<string> =>
    errorOf(await send(origin, { method: 'POST', path })).message;
  const OPENAI =
    'responses embeddings completions audio/speech audio/transcriptions images/edits images/variations files batches assistants threads/thread_1/runs realtime/sessions fine_tuning/jobs vector_stores uploads messages messages/count_tokens messages/batches rerank complete';

  it.each(OPENAI.split(' '))('says what is served: /v1/%s', async (door) => {
    expect(await messageAt(`/v1/${door}`)).toBe(
      `There is nothing at /v1/${door}. It is not served. There is: POST /v1/chat/completions, POST /v1/images/generations, POST /v1/moderations, GET /v1/models, GET /v1/models/{id}, POST /mcp, GET /mcp.`,
    );
  });

  it.each([
    '/responses',
    '/v1/v1/embeddings',
    '/openai/deployments/gpt-4o/chat/completions',
    '/v1beta/models/gemini-3-pro:generateContent',
    '/api/generate',
    '/api/tags',
  ])('says so without a version, or with another one: %s', async (path) => {
    expect(await messageAt(path)).toContain(`There is nothing at ${path}. It is not served. There is: POST /v1/chat`);
  });

  it.each([
    ['/chat/completions', '/v1/chat/completions'],
    ['/v1/v1/chat/completions', '/v1/chat/completions'],
    ['/openai/v1/chat/completions', '/v1/chat/completions'],
    ['/api/chat/completions', '/v1/chat/completions'],
    ['/v2/chat/completions', '/v1/chat/completions'],
    ['/models', '/v1/models'],
    ['/images/generations', '/v1/images/generations'],
    ['/v1/v1/moderations/', '/v1/moderations'],
  ])('says how the base URL ends: %s', async (path, meant) => {
    expect(await messageAt(path)).toBe(
      `There is nothing at ${path}. The path is ${meant}: the base URL of an OpenAI client ends in /v1, once.`,
    );
  });

  it('says where MCP, the master API and calls are', async () => {
    expect(await messageAt('/v1/mcp')).toBe('There is nothing at /v1/mcp. The path of MCP is /mcp.');
    expect(await messageAt('/v1/master/keys')).toBe(
      'There is nothing at /v1/master/keys. The master API has a listener of its own: MANAGEMENT_HOST and MANAGEMENT_PORT.',
    );
    for (const path of ['/v1/chat/completions', '/v1/embeddings', '/mcp', '/chat/completions']) {
      expect(await messageAt(path, gateway.management)).toBe(
        `There is nothing at ${path}. This is the management listener. Calls go to the gateway: HOST and PORT.`,
      );
    }
  });

  it.each(['/', '/v1', '/favicon.ico', '/v1/constructor', '/v1/__proto__', '/wp-login.php', `/${'v1/'.repeat(2000)}x`])(
    'is no other path: %s',
    async (path) => {
      expect(await messageAt(path)).toBe(`There is nothing at ${path}.`);
    },
  );
});

describe('a key at the wrong door', () => {
  const at = async (origin: string, path: string, headers: readonly (readonly [string, string])[]) => {
    const answer = await send(origin, { method: 'GET', path, headers });
    return [answer.status, errorOf(answer).code, errorOf(answer).message];
  };

  it('is named in the refusal, and not repeated: a master key at the gateway', async () => {
    const { masterKey } = gateway.firstRun;
    for (const token of [masterKey, `${masterKey}x`, 'pclm_'] as const) {
      const answer = await chat(gateway, hello(), { token });
      expect([answer.status, errorOf(answer)]).toEqual([
        401,
        {
          message:
            'This is a master key: it is for the master API. Calls need a gateway key, which begins with `pcl_`.',
          type: 'invalid_request_error',
          param: null,
          code: 'invalid_api_key',
        },
      ]);
      expect(answer.text).not.toContain(masterKey);
    }
  });

  it('is named in the refusal: a platform key at the gateway', async () => {
    expect(await at(gateway.origin, '/v1/models', [bearer('sk_x')])).toEqual([
      401,
      'invalid_api_key',
      'This is a platform key, which makes no calls. Send a gateway key.',
    ]);
  });

  it('is named in the refusal: a gateway key at the master API', async () => {
    expect(await at(gateway.management, '/v1/master/keys', [bearer(gateway.firstRun.gatewayKey)])).toEqual([
      401,
      'invalid_api_key',
      'This is a gateway key: it is for calls. The master API needs a master key, which begins with `pclm_`.',
    ]);
  });
});

describe('the header x-api-key', () => {
  const asked = (
    headers: readonly (readonly [string, string])[],
    path = '/v1/chat/completions',
    body: object = hello(),
  ) => send(gateway.origin, { method: 'POST', path, headers: [JSON_TYPE, ...headers], body: JSON.stringify(body) });

  it.each([
    ['/v1/chat/completions', hello()],
    ['/v1/images/generations', { model: 'sandbox-image-plus', prompt: 'A cat', size: '64x64' }],
    ['/v1/moderations', { input: 'Hello' }],
    ['/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }],
  ])('holds the key at %s', async (path, body) => {
    const { gatewayKey } = gateway.firstRun;
    expect((await asked([['x-api-key', gatewayKey]], path, body)).status).toBe(200);
    expect((await asked([['x-api-key', gatewayKey], bearer(gatewayKey)], path, body)).status).toBe(200);
    expect((await asked([['x-api-key', `${gatewayKey}x`]], path, body)).status).toBe(401);
    expect((await asked([['x-api-key', gatewayKey], bearer(addKey(gateway).token)], path, body)).status).toBe(400);
  });

  it('holds the key of a list of models, which is then private', async () => {
    const own: readonly (readonly [string, string])[] = [['x-api-key', gateway.firstRun.gatewayKey]];
    const listed = await send(gateway.origin, { path: '/v1/models', headers: own });
    const catalogue = await send(gateway.origin, { path: '/v1/models' });
    expect([listed.status, listed.headers['cache-control']]).toEqual([200, 'private, no-store']);
    expect(listed.text.length).toBeLessThan(catalogue.text.length);
    const wrong = await send(gateway.origin, { path: '/v1/models', headers: [['x-api-key', 'pcl_x']] });
    expect(wrong.status).toBe(401);
  });

  it('holds the master key of every operation of the master API', async () => {
    for (const { method, path } of management.operations.filter((each) => 'key' in each && each.key === 'master')) {
      const headers = [['x-api-key', gateway.firstRun.masterKey], JSON_TYPE] as const;
      const body = method === 'post' || method === 'patch' ? { body: '[]' } : {};
      const target = path.replaceAll(/\{\w+\}/g, 'none');
      const answer = await send(gateway.management, { method: method.toUpperCase(), path: target, headers, ...body });
      expect([method, path, [200, 400, 404].includes(answer.status)]).toEqual([method, path, true]);
    }
  });

  it('that is empty is none', async () => {
    const answer = await post(gateway, hello(), [JSON_TYPE, ['x-api-key', ' ']]);
    expect(errorOf(answer).message).toMatch(/^No API key was given/);
  });
});
