// Who may call `/mcp`: the same keys, limits, addresses and words as on the REST endpoints.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addKey, addRule, disable, removeRule, startGateway, type TestGateway } from '../../support/gateway.ts';
import { callTool, postMcp, resultOf, rpc, rpcErrorOf, toolResultOf } from '../../support/mcp.ts';
import { send } from '../../support/request.ts';

let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startGateway({ ALLOWED_ORIGINS: 'https://chat.example', TRUSTED_PROXIES: 'none' });
});

afterAll(() => gateway.close());

const PING = { jsonrpc: '2.0', id: 7, method: 'ping' };

/** What a refused caller gets: the JSON-RPC error, whose data is what the error envelope holds elsewhere. */
const refusal = (code: number, message: string, type: string, name: string) => ({
  jsonrpc: '2.0',
  id: null,
  error: { code, message, data: { message, type, param: null, code: name } },
});

describe('the key', () => {
  it('is taken from x-api-key too', async () => {
    const headers = [['x-api-key', gateway.firstRun.gatewayKey]] as const;

    expect(resultOf(await postMcp(gateway, PING, { token: null, headers }))).toEqual({});
  });

  it('must be the same in both headers', async () => {
    const answer = await postMcp(gateway, PING, { headers: [['x-api-key', 'another']] });

    expect([answer.status, rpcErrorOf(answer)]).toMatchObject([
      400,
      { code: -32600, message: 'The request has two different credentials.' },
    ]);
  });

  it('is asked for with 401 and a challenge', async () => {
    const answer = await postMcp(gateway, PING, { token: null });

    expect([answer.status, answer.headers['www-authenticate'], answer.json]).toEqual([
      401,
      `Bearer resource_metadata="${gateway.origin}/.well-known/oauth-protected-resource/mcp", scope="mcp"`,
      refusal(
        -32600,
        'No API key was given: send `Authorization: Bearer <key>`.',
        'invalid_request_error',
        'invalid_api_key',
      ),
    ]);
  });

  it('works no longer on the request after it was disabled', async () => {
    const { id, token } = addKey(gateway);
    const before = await postMcp(gateway, PING, { token });
    disable(gateway, id);
    const after = await postMcp(gateway, PING, { token });

    expect([before.status, after.status, rpcErrorOf(after)]).toMatchObject([
      200,
      401,
      { data: { code: 'api_key_disabled' } },
    ]);
  });

  it('that has spent its limit is refused with 401, before anything is read', async () => {
    const { token } = addKey(gateway, { usageLimit: '0.0000001' });
    const chat = { model: 'sandbox-paid', messages: [{ role: 'user', content: 'Hello' }] };
    const answer = await callTool(gateway, 'chat', chat, { token });

    expect([answer.status, rpcErrorOf(answer)]).toMatchObject([
      401,
      { code: -32600, data: { code: 'usage_limit_reached', type: 'invalid_request_error' } },
    ]);
  });
});

describe('the address', () => {
  it('that IP rules deny is refused with 403 on every request, in the words of the REST endpoints', async () => {
    const { id } = addRule(gateway, 'organization', {
      ruleType: 'deny_ip_cidrs',
      ruleValue: { ipCidrs: ['127.0.0.0/8'] },
      description: 'Not from here',
    });
    const answer = await rpc(gateway, 'tools/list');
    removeRule(gateway, 'organization', id);
    const message = `Access denied: IP not permitted: the client address lies in 127.0.0.0/8, denied by rule ${id} (Not from here). This is an organization IAM rule set by the org admin.`;

    expect([answer.status, answer.json]).toEqual([
      403,
      refusal(-32600, message, 'invalid_request_error', 'permission_denied'),
    ]);
  });

  it('that IP rules allow may list the tools though other rules deny every model', async () => {
    const rules = [
      addRule(gateway, 'key', { ruleType: 'allow_ip_cidrs', ruleValue: { ipCidrs: ['127.0.0.0/8'] } }),
      addRule(gateway, 'key', { ruleType: 'deny_providers', ruleValue: { providers: ['sandbox'] } }),
    ];
    const answer = await rpc(gateway, 'tools/list');
    for (const { id } of rules) removeRule(gateway, 'key', id);

    expect(answer.status).toBe(200);
  });
});

describe('web pages', () => {
  it.each([
    ['an allowed origin', 'https://chat.example', 200],
    ['the gateway itself', 'http://localhost:4001', 200],
    ['another origin', 'https://evil.example', 403],
    ['an origin that is hidden', 'null', 403],
  ])('of %s: %s, %i', async (_, origin, status) => {
    const answer = await postMcp(gateway, PING, { headers: [['origin', origin]] });

    expect(answer.status).toBe(status);
  });

  it('that reach the gateway under a foreign name are refused', async () => {
    const answer = await postMcp(gateway, PING, { headers: [['host', 'evil.example']] });

    expect(answer.status).toBe(421);
  });

  it('of an allowed origin get their preflight answered', async () => {
    const answer = await send(gateway.origin, {
      method: 'OPTIONS',
      path: '/mcp',
      headers: [
        ['origin', 'https://chat.example'],
        ['access-control-request-method', 'POST'],
        ['access-control-request-headers', 'authorization,content-type,mcp-protocol-version'],
      ],
    });

    expect([answer.status, answer.headers['access-control-allow-headers']]).toEqual([
      204,
      'authorization,content-type,mcp-protocol-version',
    ]);
  });
});

describe('the rate limits', () => {
  it('of /mcp answer 429, with a time to wait', async () => {
    const limited = await startGateway({ RATE_LIMIT_MCP_PER_MINUTE: '1' });
    const [first, second] = [await postMcp(limited, PING), await postMcp(limited, PING)];
    await limited.close();

    expect([first.status, second.status, second.headers['retry-after'], rpcErrorOf(second)]).toMatchObject([
      200,
      429,
      expect.stringMatching(/^\d+$/),
      { code: -32600, data: { type: 'rate_limit_error', code: 'rate_limit_exceeded' } },
    ]);
  });

  it('of chats count the chats of tools too', async () => {
    const limited = await startGateway({ RATE_LIMIT_CHAT_PER_MINUTE: '1' });
    const chat = { model: 'sandbox-paid', messages: [{ role: 'user', content: 'Hello' }] };
    const [first, second] = [await callTool(limited, 'chat', chat), await callTool(limited, 'chat', chat)];
    await limited.close();

    expect([toolResultOf(first).isError, toolResultOf(second)]).toMatchObject([
      undefined,
      { isError: true, content: [{ text: expect.stringContaining('Your organization') }] },
    ]);
  });
});

it('a body that is too large is refused with 413', async () => {
  const small = await startGateway({ MAX_BODY_BYTES: '1000' });
  const answer = await postMcp(small, `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"${'a'.repeat(1000)}"}}`);
  await small.close();

  expect([answer.status, rpcErrorOf(answer)]).toMatchObject([413, { data: { code: 'request_too_large' } }]);
});

describe('a stream for notifications', () => {
  it('ends when its key may not be used any more', async () => {
    const watched = await startGateway({ KEEP_ALIVE_COMMENT_MS: '1000' });
    const { id, token } = addKey(watched);
    const headers = { accept: 'text/event-stream', authorization: `Bearer ${token}` };

    const stream = await fetch(`${watched.origin}/mcp`, { headers });
    disable(watched, id);
    const received = await stream.text();
    await watched.close();

    expect([stream.status, received]).toEqual([200, expect.stringMatching(/^: open\n\n(: keep-alive\n\n)*$/)]);
  });
});
