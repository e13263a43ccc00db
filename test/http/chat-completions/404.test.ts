// POST /v1/chat/completions: a model, or a path, that is not there.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { chat, hello } from '../../support/chat.ts';
import { addRule, startGateway, type TestGateway } from '../../support/gateway.ts';
import { send } from '../../support/request.ts';
import { callRows } from '../../support/rows.ts';

let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startGateway();
});

afterAll(() => gateway.close());

const notFound = (code: string, message: string) => ({
  error: { message, type: 'invalid_request_error', param: null, code },
});

describe('a model that does not exist', () => {
  it.each([
    'no-such-model',
    'sandbox/no-such-model',
    'nobody/sandbox-paid',
    'Sandbox-Paid',
    'sandbox-paid/',
    '/sandbox-paid',
    'sandbox',
    'sandbox/',
    'sandbox//sandbox-paid',
    '/',
    '__proto__',
    'constructor/x',
    'a'.repeat(512),
  ])('is 404, whatever its well-formed name: %s', async (model) => {
    const answer = await chat(gateway, hello({ model }));

    expect([answer.status, answer.json]).toEqual([
      404,
      notFound('model_not_found', expect.stringMatching(`^The model \`${RegExp.escape(model)}\` does not exist\\.`)),
    ]);
  });

  it('is answered before the policy is asked, and leaves no row', async () => {
    addRule(gateway, 'key', { ruleType: 'deny_ip_cidrs', ruleValue: { ipCidrs: ['0.0.0.0/0'] } });

    const answer = await chat(gateway, hello({ model: 'no-such-model' }));

    expect([answer.status, 'x-decision-id' in answer.headers, callRows(gateway)]).toEqual([404, false, []]);
  });
});

describe('a model that is retired', () => {
  it.each([
    ['grok-4', '2026-05-15'],
    ['claude-3-opus', '2026-01-05'],
    ['openai/gpt-image-1', '2026-10-23'],
  ])('is 404, which says since when: %s', async (model, day) => {
    const answer = await chat(gateway, hello({ model }));

    expect([answer.status, answer.json]).toEqual([
      404,
      notFound('model_not_found', `The model \`${model}\` is retired since ${day}: no provider serves it any more.`),
    ]);
  });
});

describe('a sandbox that is off', () => {
  it('takes its models with it', async () => {
    const bare = await startGateway({ SANDBOX: 'off' });

    const answer = await chat(bare, hello());

    await bare.close();
    expect([answer.status, answer.json]).toEqual([
      404,
      notFound('model_not_found', 'The model `sandbox-paid` does not exist.'),
    ]);
  });
});

describe('a path that does not exist', () => {
  it.each(['/', '/v1', '/v1/chat', '/v1/chat/completions/x', '/V1/nothing', '//', '/v1/chat/completions/../x'])(
    'is 404 in the envelope: %s',
    async (path) => {
      const answer = await send(gateway.origin, { method: 'POST', path });

      const message = expect.stringMatching(`^There is nothing at ${RegExp.escape(path)}\\.`);
      expect([answer.status, answer.json]).toEqual([404, notFound('not_found', message)]);
      expect(answer.headers['x-request-id']).toMatch(/^req_/);
    },
  );
});
