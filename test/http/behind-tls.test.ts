// `/v1` and `/mcp` under PUBLIC_URL, behind a proxy that ends TLS: by the clients that people use, with the caller's own address.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import OpenAI from 'openai';
import { Agent, fetch as fetchWith } from 'undici';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { addRule, removeRule } from '../support/gateway.ts';
import { callRows } from '../support/rows.ts';
import { CALLER, startTlsGateway, type TlsGateway } from '../support/tls-gateway.ts';

let agent: Agent;
let gateway: TlsGateway;

beforeAll(async () => {
  gateway = await startTlsGateway('gateway.example');
  agent = new Agent({
    connect: { lookup: (_, __, found) => found(null, [{ address: '127.0.0.1', family: 4 }]) },
  });
});

afterAll(async () => {
  await agent.close();
  await gateway.close();
});

/** `fetch` of a client that knows where the proxy's name leads. */
const overTls: typeof fetch = async (input, init) => {
  const answer = await fetchWith(String(input), { ...Object(init), dispatcher: agent });
  return new Response(Object(answer.body), { status: answer.status, headers: [...answer.headers] });
};

const openai = (): OpenAI =>
  new OpenAI({ apiKey: gateway.firstRun.gatewayKey, baseURL: `${gateway.origin}/v1`, fetch: overTls, maxRetries: 0 });

const HELLO = { model: 'sandbox-paid', messages: [{ role: 'user' as const, content: 'Hello' }] };

it('a chat is completed, whole and as a stream, and its row has the address of the caller', async () => {
  const whole = await openai().chat.completions.create(HELLO);
  const stream = await openai().chat.completions.create({ ...HELLO, stream: true });
  let text = '';
  for await (const { choices } of stream) text += choices[0]?.delta.content ?? '';

  expect([whole.choices[0]?.message.content, text]).toEqual(['You said: Hello', 'You said: Hello']);
  expect(callRows(gateway).map(({ clientAddress: address }) => address)).toEqual([CALLER, CALLER]);
});

it.each(['legacy', 'auto'] as const)('MCP works in both eras: %s', async (mode) => {
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } });
  const requestInit = { headers: { authorization: `Bearer ${gateway.firstRun.gatewayKey}` } };
  await client.connect(
    new StreamableHTTPClientTransport(new URL(`${gateway.origin}/mcp`), { requestInit, fetch: overTls }),
  );
  const result = await client.callTool({ name: 'chat', arguments: HELLO });
  await client.close();

  expect(result).toMatchObject({ content: [{ type: 'text', text: 'You said: Hello' }] });
});

it('rules on addresses judge the caller, not the proxy, on both', async () => {
  const { id } = addRule(gateway, 'key', { ruleType: 'deny_ip_cidrs', ruleValue: { ipCidrs: ['203.0.113.0/24'] } });
  const chatted = await openai()
    .chat.completions.create(HELLO)
    .catch((error: unknown) => error);
  const headers = { authorization: `Bearer ${gateway.firstRun.gatewayKey}`, 'content-type': 'application/json' };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' });
  const listed = await overTls(`${gateway.origin}/mcp`, { method: 'POST', headers, body });
  removeRule(gateway, 'key', id);

  expect([chatted, listed.status]).toMatchObject([{ status: 403, code: 'permission_denied' }, 403]);
});

it('a web page of the public origin may call, one of another may not', async () => {
  const ping = (origin: string) =>
    overTls(`${gateway.origin}/mcp`, {
      method: 'POST',
      headers: { origin, authorization: `Bearer ${gateway.firstRun.gatewayKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' }),
    });

  expect([(await ping(gateway.origin)).status, (await ping('https://other.example')).status]).toEqual([200, 403]);
});
