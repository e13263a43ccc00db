// The official MCP clients, unmodified: both majors of the TypeScript SDK, in both eras of the protocol.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as Transport1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startGateway, type TestGateway } from '../support/gateway.ts';

let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startGateway();
});

afterAll(() => gateway.close());

const CLIENT = { name: 'test', version: '1' };

const TOOLS = ['chat', 'generate-image', 'generate-nano-banana', 'list-models', 'list-image-models'];

const CALLS = [
  { name: 'chat', arguments: { model: 'sandbox-paid', messages: [{ role: 'user', content: 'Hello' }] } },
  { name: 'generate-image', arguments: { prompt: 'a red fox', size: '64x32' } },
  { name: 'generate-nano-banana', arguments: { prompt: 'a banana' } },
  { name: 'list-models', arguments: { family: 'sandbox' } },
  { name: 'list-image-models', arguments: {} },
];

const RESULTS = [
  { content: [{ type: 'text', text: expect.stringContaining('Hello') }] },
  { content: [{ type: 'image', mimeType: 'image/png' }] },
  { content: [{ type: 'image', mimeType: 'image/png' }] },
  { structuredContent: { total: 7 } },
  { structuredContent: { models: [{ id: 'sandbox-image-max' }, { id: 'sandbox-image-plus' }] } },
];

const endpoint = (): URL => new URL(`${gateway.origin}/mcp`);

const headers = (name: string) => ({
  requestInit: {
    headers: {
      [name]: name === 'x-api-key' ? gateway.firstRun.gatewayKey : `Bearer ${gateway.firstRun.gatewayKey}`,
    },
  },
});

/** What both majors of the client have. */
type AnyClient = Pick<Client | Client1, 'close'> & {
  listTools(): Promise<{ tools: { name: string }[] }>;
  callTool(call: (typeof CALLS)[number]): Promise<unknown>;
};

/** Lists the tools and calls each of them. */
async function useAll(client: AnyClient): Promise<[names: string[], results: unknown[]]> {
  const { tools } = await client.listTools();
  const results = [];
  for (const call of CALLS) results.push(await client.callTool(call));
  await client.close();
  return [tools.map(({ name }) => name), results];
}

describe.each(['authorization', 'x-api-key'])('with the key in %s', (name) => {
  it('the client of SDK 1 lists and calls every tool', async () => {
    const client = new Client1(CLIENT);
    await client.connect(new Transport1(endpoint(), headers(name)));

    expect(await useAll(client)).toMatchObject([TOOLS, RESULTS]);
  });

  it.each(['legacy', 'auto', { pin: '2026-07-28' }] as const)(
    'the client of SDK 2 lists and calls every tool: %j',
    async (mode) => {
      const client = new Client(CLIENT, { versionNegotiation: { mode } });
      await client.connect(new StreamableHTTPClientTransport(endpoint(), headers(name)));

      expect(await useAll(client)).toMatchObject([TOOLS, RESULTS]);
    },
  );
});

it('a refused tool call reaches a client as a result that says why', async () => {
  const client = new Client(CLIENT);
  await client.connect(new StreamableHTTPClientTransport(endpoint(), headers('authorization')));
  const result = await client.callTool({
    name: 'chat',
    arguments: { model: 'no-such-model', messages: [{ role: 'user', content: 'x' }] },
  });
  await client.close();

  expect(result).toMatchObject({ isError: true, content: [{ text: 'The model `no-such-model` does not exist.' }] });
});

it('a wrong key reaches a client as an error of status 401', async () => {
  const client = new Client1(CLIENT);
  const transport = new Transport1(endpoint(), { requestInit: { headers: { 'x-api-key': 'wrong' } } });

  await expect(client.connect(transport)).rejects.toThrow(/API key is not valid/);
});
