// The official MCP clients log in by themselves: discovery, registration, consent in a browser, tokens, refresh. All that they get
// is the address of the endpoint.
import { Client, ClientCredentialsProvider, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as Transport1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { register } from '../http/oauth/application.ts';
import { Login } from '../http/oauth/login.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startTlsGateway } from '../support/tls-gateway.ts';

const CLIENT = { name: 'test', version: '1' };

/** Connects; the first time a person must allow it. */
async function connected<C extends { connect(transport: T): Promise<void> }, T>(
  newClient: () => C,
  newTransport: () => T,
  finish: (transport: T) => Promise<void>,
): Promise<C> {
  const [first, transport] = [newClient(), newTransport()];
  await expect(first.connect(transport)).rejects.toThrow('Unauthorized');
  await finish(transport);
  const client = newClient();
  await client.connect(newTransport());
  return client;
}

const TOOLS = ['chat', 'generate-image', 'generate-nano-banana', 'list-models', 'list-image-models'];
const CHAT = { name: 'chat', arguments: { model: 'sandbox-paid', messages: [{ role: 'user', content: 'Hello' }] } };
const ANSWER = { content: [{ type: 'text', text: expect.stringContaining('Hello') }] };

describe.each<[string, () => Promise<TestGateway>]>([
  ['on loopback', () => startGateway()],
  ['behind a proxy that ends TLS, under PUBLIC_URL', () => startTlsGateway('localhost')],
])('%s', (_, start) => {
  let gateway: TestGateway;

  beforeAll(async () => {
    gateway = await start();
  });

  afterAll(() => gateway.close());

  const endpoint = (): URL => new URL(`${gateway.origin}/mcp`);

  it('the client of SDK 1 logs in by code, calls a tool, and refreshes what has expired', async () => {
    const login = new Login(gateway);
    const client = await connected(
      () => new Client1(CLIENT),
      () => new Transport1(endpoint(), { authProvider: login }),
      (transport) => transport.finishAuth(login.callback.get('code') ?? ''),
    );
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(TOOLS);
    login.spoil();
    expect(await client.callTool(CHAT)).toMatchObject(ANSWER);
    expect(login.logins).toBe(1);
    await client.close();
  });

  it('the client of SDK 2 logs in by code, calls a tool, and refreshes what has expired', async () => {
    const login = new Login(gateway);
    const client = await connected(
      () => new Client(CLIENT),
      () => new StreamableHTTPClientTransport(endpoint(), { authProvider: login }),
      (transport) => transport.finishAuth(login.callback),
    );
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(TOOLS);
    login.spoil();
    expect(await client.callTool(CHAT)).toMatchObject(ANSWER);
    expect(login.logins).toBe(1);
    await client.close();
  });

  it('the client of SDK 2 logs in by client credentials', async () => {
    const { body } = await register(
      gateway.origin,
      { grant_types: ['client_credentials'], response_types: [], redirect_uris: [] },
      { authorization: `Bearer ${gateway.firstRun.gatewayKey}` },
    );
    const authProvider = new ClientCredentialsProvider({
      clientId: String(body.client_id),
      clientSecret: String(body.client_secret),
      expectedIssuer: gateway.origin,
    });
    const client = new Client(CLIENT);
    await client.connect(new StreamableHTTPClientTransport(endpoint(), { authProvider }));
    expect(await client.callTool(CHAT)).toMatchObject(ANSWER);
    await client.close();
  });
});
