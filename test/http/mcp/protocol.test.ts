// The protocol of `/mcp`: both eras of MCP, by the headers that clients really send.
import { request } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import manifest from '../../../package.json' with { type: 'json' };
import { bearer } from '../../support/chat.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import { messagesOf, postMcp, resultOf, rpc, rpcErrorOf, statelessRpc } from '../../support/mcp.ts';
import { tables } from '../../support/pages.ts';
import { send } from '../../support/request.ts';

let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startGateway();
});

afterAll(() => gateway.close());

const TOOLS = ['chat', 'generate-image', 'generate-nano-banana', 'list-models', 'list-image-models'];

it('the tools of the page are these', () => {
  expect(tables('Tool').map((rows) => rows.map(([name]) => name))).toEqual([TOOLS.map((name) => `\`${name}\``)]);
});

const serverInfo = { name: 'portcullis', title: 'Portcullis', version: manifest.version };

describe('the handshake revisions', () => {
  it.each(['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'])(
    '%s is agreed when it is asked for',
    async (version) => {
      const params = { protocolVersion: version, capabilities: {}, clientInfo: { name: 'test', version: '1' } };

      expect(resultOf(await rpc(gateway, 'initialize', params))).toEqual({
        protocolVersion: version,
        capabilities: { tools: {} },
        serverInfo,
        instructions: expect.stringMatching(/^Portcullis is a gateway /),
      });
    },
  );

  it('the newest of them is offered where an unknown one is asked for', async () => {
    const params = { protocolVersion: '1999-01-01', capabilities: {}, clientInfo: { name: 'test', version: '1' } };

    expect(resultOf(await rpc(gateway, 'initialize', params))).toMatchObject({ protocolVersion: '2025-11-25' });
  });

  it('a ping is answered', async () => {
    expect(resultOf(await rpc(gateway, 'ping'))).toEqual({});
  });

  it('a notification is accepted without an answer', async () => {
    const answer = await postMcp(gateway, { jsonrpc: '2.0', method: 'notifications/initialized' });

    expect([answer.status, answer.text]).toEqual([202, '']);
  });

  it('an unknown method is a JSON-RPC error in an answer of status 200', async () => {
    const answer = await rpc(gateway, 'resources/list');

    expect([answer.status, rpcErrorOf(answer)]).toEqual([200, { code: -32601, message: 'Method not found' }]);
  });

  it('an unknown version in the header is 400', async () => {
    const answer = await rpc(gateway, 'ping', {}, { headers: [['mcp-protocol-version', '1999-01-01']] });

    expect([answer.status, rpcErrorOf(answer)]).toMatchObject([
      400,
      { message: expect.stringContaining('1999-01-01') },
    ]);
  });
});

describe('the stateless revision', () => {
  it('is discovered', async () => {
    expect(resultOf(await statelessRpc(gateway, 'server/discover'))).toMatchObject({
      resultType: 'complete',
      supportedVersions: ['2026-07-28'],
      capabilities: { tools: {} },
    });
  });

  it('lists the tools, for this caller alone', async () => {
    expect(resultOf(await statelessRpc(gateway, 'tools/list'))).toMatchObject({
      resultType: 'complete',
      cacheScope: 'private',
      tools: TOOLS.map((name) => ({ name })),
    });
  });

  it('refuses a header that does not mirror the body', async () => {
    const headers = [['mcp-method', 'tools/call']] as const;
    const meta = {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientCapabilities': {},
    };
    const answer = await rpc(
      gateway,
      'tools/list',
      { _meta: meta },
      { headers: [['mcp-protocol-version', '2026-07-28'], ...headers] },
    );

    expect([answer.status, rpcErrorOf(answer)]).toMatchObject([400, { code: -32020 }]);
  });

  it.each(['ping', 'initialize', 'logging/setLevel'])('knows no %s', async (method) => {
    const answer = await statelessRpc(gateway, method);

    expect([answer.status, rpcErrorOf(answer)]).toMatchObject([404, { code: -32601 }]);
  });
});

describe('the form of an answer', () => {
  const typeFor = async (accept?: string) => {
    const answer = await rpc(gateway, 'tools/list', {}, { headers: accept === undefined ? [] : [['accept', accept]] });
    return [answer.status, answer.headers['content-type']];
  };

  it.each([
    ['no Accept', undefined],
    ['any type', '*/*'],
    ['JSON alone', 'application/json'],
    ['both types', 'application/json, text/event-stream'],
  ])('is JSON for %s', async (_, accept) => {
    expect(await typeFor(accept)).toEqual([200, 'application/json']);
  });

  it('is server-sent events for those who take nothing else', async () => {
    const answer = await rpc(gateway, 'ping', {}, { headers: [['accept', 'text/event-stream']] });

    expect([answer.headers['content-type'], messagesOf(answer.text)]).toEqual([
      'text/event-stream',
      [{ jsonrpc: '2.0', id: 1, result: {} }],
    ]);
  });
});

describe('what is no message', () => {
  it.each([
    ['text that is no JSON', '{', -32700, 'invalid_json', 'The request body is not valid JSON.'],
    ['an object of another kind', {}, -32600, 'invalid_request', 'The request body must be one JSON-RPC 2.0 message.'],
    [
      'a list of messages',
      [{ jsonrpc: '2.0', id: 1, method: 'ping' }],
      -32600,
      'invalid_request',
      'The request body must be one JSON-RPC 2.0 message.',
    ],
  ])('%s is 400', async (_, body, code, name, message) => {
    const answer = await postMcp(gateway, body);

    expect([answer.status, answer.json]).toEqual([
      400,
      {
        jsonrpc: '2.0',
        id: null,
        error: { code, message, data: { message, type: 'invalid_request_error', param: null, code: name } },
      },
    ]);
  });

  it.each([
    ['initialize', (deep: unknown) => ({ capabilities: { experimental: { x: { a: deep } } } })],
    ['ping', (deep: unknown) => ({ capabilities: { sampling: deep } })],
    ['tools/list', (deep: unknown) => ({ _meta: { 'io.modelcontextprotocol/clientCapabilities': { x: deep } } })],
  ])(
    '%s with much besides the arguments of a tool is 400: the SDK would take a second for it',
    async (method, params) => {
      const nested = JSON.parse(`${'['.repeat(48)}${']'.repeat(48)}`);
      const answer = await rpc(gateway, method, params(Array(4000).fill(nested)));

      expect([answer.status, rpcErrorOf(answer)]).toMatchObject([
        400,
        { code: -32600, message: 'The message holds more than 500 values besides the arguments of a tool.' },
      ]);
    },
  );

  it('another media type is 415', async () => {
    const headers = [bearer(gateway.firstRun.gatewayKey), ['content-type', 'text/plain']] as const;
    const answer = await send(gateway.origin, { method: 'POST', path: '/mcp', headers, body: '{}' });

    expect([answer.status, rpcErrorOf(answer)]).toMatchObject([415, { code: -32600 }]);
  });
});

describe('params that are wrong', () => {
  it.each([
    ['initialize', {}, '/protocolVersion is missing.'],
    ['initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: {} }, '/clientInfo/name is missing.'],
    ['tools/call', {}, '/name is missing.'],
    ['tools/call', { name: 'chat', arguments: 'x' }, '/arguments ("x") must be of type object.'],
    ['tools/list', { cursor: 'x' }, '/cursor ("x") must NOT have more than 0 characters.'],
  ])('of %s: %j', async (method, params, fault) => {
    const answer = await rpc(gateway, method, params);

    expect([answer.status, answer.json]).toEqual([
      200,
      { jsonrpc: '2.0', id: 1, error: { code: -32602, message: `Invalid params: ${fault}` } },
    ]);
  });
});

describe('GET and other methods', () => {
  it('GET is a sign of life that needs no key', async () => {
    const answer = await send(gateway.origin, { path: '/mcp' });

    expect([answer.status, answer.json]).toEqual([
      200,
      { status: 'ok', name: 'portcullis', version: manifest.version },
    ]);
  });

  it('a stream of events needs a key', async () => {
    const answer = await send(gateway.origin, { path: '/mcp', headers: [['accept', 'text/event-stream']] });

    expect([answer.status, rpcErrorOf(answer)]).toMatchObject([401, { data: { code: 'invalid_api_key' } }]);
  });

  it.each(['DELETE', 'PUT'])('%s is 405 and names what there is', async (method) => {
    const answer = await send(gateway.origin, { method, path: '/mcp' });

    expect([answer.status, answer.headers.allow]).toEqual([405, 'GET, HEAD, OPTIONS, POST']);
  });

  it('a stream of events stays open, and one key can hold 32 of them', async () => {
    const { hostname, port } = new URL(gateway.origin);
    const headers = { accept: 'text/event-stream', authorization: `Bearer ${gateway.firstRun.gatewayKey}` };
    const open = () =>
      new Promise<[status: number | undefined, text: string, end: () => void]>((resolve, reject) => {
        const outgoing = request({ hostname, port, path: '/mcp', headers, agent: false }, (response) => {
          response.once('data', (bytes) => resolve([response.statusCode, String(bytes), () => outgoing.destroy()]));
        });
        outgoing.on('error', reject);
        outgoing.end();
      });
    const streams = await Promise.all(Array.from({ length: 32 }, open));
    const [status, text] = await open();
    for (const [, , end] of streams) end();

    expect(streams.map((stream) => stream.slice(0, 2))).toEqual(streams.map(() => [200, ': open\n\n']));
    expect([status, JSON.parse(text)]).toMatchObject([429, { error: { data: { code: 'rate_limit_exceeded' } } }]);
  });
});
