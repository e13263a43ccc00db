// What is recorded of refused requests holds no secret and no prompt, wherever a caller puts them, and a flood of them fills nothing.
import { statSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { databasePath } from '../../src/store/db/data-dir.ts';
import { bearer, chat, hello, JSON_TYPE, post } from '../support/chat.ts';
import { addKey, disable, startGateway, type TestGateway } from '../support/gateway.ts';
import { type Answer, send } from '../support/request.ts';

let gateway: TestGateway;
// Each on its own, so that none takes another's share.
beforeEach(async () => {
  gateway = await startGateway({ MAX_BODY_BYTES: '20000' });
});
afterEach(() => gateway.close());

const rows = (): Record<string, unknown>[] =>
  gateway.db.connection.prepare<[], Record<string, unknown>>('SELECT * FROM refused_requests').all();

/** Waits until all that was refused so far is written. */
async function written(): Promise<Record<string, unknown>[]> {
  await sleep(600);
  return rows();
}

const PROMPT = 'the merger with Initech closes on Friday';
const FORMS = {
  'a gateway key': () => gateway.firstRun.gatewayKey,
  'a master key': () => gateway.firstRun.masterKey,
  "a provider's key": () => 'sk-live-9f8e7d6c5b4a39281706',
  'a prompt': () => PROMPT,
  'a prompt in quotes': () => `"${PROMPT}" \` ${PROMPT} "`,
  'a prompt in brackets': () => `) ${PROMPT} ( ${PROMPT}`,
  'a word': () => 'Zanzibar',
} as const satisfies Record<string, () => string>;

const ask = (body: object | string, headers: [string, string][] = []): Promise<Answer> => {
  const named = headers.some(([name]) => name === 'authorization');
  return post(gateway, body, [JSON_TYPE, ...(named ? [] : [bearer(gateway.firstRun.gatewayKey)]), ...headers]);
};

const header = (text: string): string => text.replaceAll('\n', ' ');
const path = (text: string): string => encodeURIComponent(text).replaceAll('%20', '-');
const form = ['content-type', 'application/x-www-form-urlencoded'] as const;

/** Where a caller can put a text so that the request is refused. */
const POSITIONS: Readonly<Record<string, (text: string) => Promise<Answer>>> = {
  'the bearer token': (text) => ask(hello(), [['authorization', `Bearer ${header(text)}x`]]),
  'another scheme': (text) => ask(hello(), [['authorization', header(text)]]),
  'x-api-key': (text) =>
    send(gateway.origin, { path: '/v1/chat/completions', method: 'POST', headers: [['x-api-key', header(text)]] }),
  'the user agent': (text) => ask('{', [['user-agent', header(text)]]),
  'the user agent as a product': (text) => ask('{', [['user-agent', `curl/8.0 ${header(text)}`]]),
  'the content type': (text) =>
    post(gateway, '{}', [bearer(gateway.firstRun.gatewayKey), ['content-type', header(text)]]),
  'the host': (text) => send(gateway.origin, { path: '/v1/models', headers: [['host', path(text)]] }),
  'a path': (text) => send(gateway.origin, { path: `/${path(text)}` }),
  'a path below a known one': (text) => send(gateway.origin, { path: `/v1/${path(text)}/completions`, method: 'POST' }),
  'the id of a model in the path': (text) => send(gateway.origin, { path: `/v1/models/${path(text)}` }),
  'a query': (text) => send(gateway.origin, { path: `/v1/nothing?${path(text)}=${path(text)}` }),
  'a query of the model list': (text) => send(gateway.origin, { path: `/v1/models?mapped=${path(text)}` }),
  'JSON that is none': (text) => ask(`{"messages": ${text}`),
  'the model': (text) => ask(hello({ model: `${text} ${text}` })),
  'the name of a field': (text) => ask(hello({ [text]: 1 })),
  'the name of a nested field': (text) => ask(hello({ messages: [{ role: 'user', content: 'x', [text]: 1 }] })),
  'the name of a field with slashes': (text) => ask(hello({ [`/messages/${text}/~`]: 1 })),
  'a name of a field as long as a body': (text) => ask(hello({ [`${text}/(`.repeat(200)]: 1 })),
  'a role': (text) => ask(hello({ messages: [{ role: text, content: text }] })),
  'a content': (text) => ask(hello({ messages: [{ role: 'user', content: text }], n: -1 })),
  'a content of a wrong type': (text) => ask(hello({ messages: text })),
  'a number in text': (text) => ask(hello({ temperature: text })),
  'a tool': (text) => ask(hello({ tools: [{ type: text, function: { name: text, description: text } }] })),
  'a tool choice': (text) => ask(hello({ tool_choice: text })),
  'a long text': (text) => ask(hello({ reasoning_effort: `${text} `.repeat(40) })),
  'a body that is too large': (text) => ask(hello({ x: `${text} `.repeat(4000) })),
  'an image request': (text) =>
    send(gateway.origin, {
      path: '/v1/images/generations',
      method: 'POST',
      headers: [bearer(gateway.firstRun.gatewayKey), JSON_TYPE],
      body: JSON.stringify({ prompt: text, size: text, n: text }),
    }),
  'a moderation': (text) =>
    send(gateway.origin, {
      path: '/v1/moderations',
      method: 'POST',
      headers: [bearer(gateway.firstRun.gatewayKey), JSON_TYPE],
      body: JSON.stringify({ input: { text }, [text]: text }),
    }),
  'a message of MCP': (text) =>
    send(gateway.origin, {
      path: '/mcp',
      method: 'POST',
      headers: [bearer(gateway.firstRun.gatewayKey), JSON_TYPE],
      body: JSON.stringify({ jsonrpc: '2.0', id: text, method: text, params: { [text]: text } }),
    }),
  'a header of MCP': (text) =>
    send(gateway.origin, {
      path: '/mcp',
      method: 'POST',
      headers: [bearer(gateway.firstRun.gatewayKey), JSON_TYPE, ['mcp-protocol-version', header(text)]],
      body: '{}',
    }),
  'a form of OAuth': (text) =>
    send(gateway.origin, {
      path: '/oauth/token',
      method: 'POST',
      headers: [form],
      body: new URLSearchParams({ grant_type: text, code: text, client_id: text, refresh_token: text }).toString(),
    }),
  'a form of the sign-in': (text) =>
    send(gateway.origin, {
      path: '/account/sign-in',
      method: 'POST',
      headers: [form, ['origin', gateway.origin]],
      body: new URLSearchParams({ email: text, password: text }).toString(),
    }),
  'a link': (text) => send(gateway.origin, { path: `/account/link/${path(text)}` }),
  'a header of meta data': (text) => ask(hello({ model: 'none' }), [['x-portcullis-meta-note', header(text)]]),
};

it.each(Object.entries(FORMS))('%s is in no row of a refused request, wherever it stood', async (_, make) => {
  const text = make();
  const statuses: [string, number][] = [];
  for (const [position, put] of Object.entries(POSITIONS)) statuses.push([position, (await put(text)).status]);
  const found = await written();
  const kept = JSON.stringify(found);
  expect(kept).not.toContain(text);
  expect(kept).not.toMatch(/merger|Initech|Friday|closes|Zanzibar|9f8e7d6c/);
  for (const secret of [gateway.firstRun.gatewayKey, gateway.firstRun.masterKey])
    expect(kept).not.toContain(secret.slice(5, 25));
  const refused = statuses.filter(([, status]) => status >= 400);
  expect(refused.length).toBeGreaterThan(20);
  expect(found).toHaveLength(refused.length);
});

it('a flood of unknown keys keeps the database small and calls fast, and a refused key of ours still has its row', async () => {
  const key = addKey(gateway);
  disable(gateway, key.id);
  const before = rows().length;
  const size = () =>
    ['', '-wal'].reduce(
      (sum, end) => sum + (statSync(databasePath(gateway.dataDir) + end, { throwIfNoEntry: false })?.size ?? 0),
      0,
    );
  const begun = size();
  const cpu = process.cpuUsage();
  for (let round = 0; round < 60; round += 1) {
    await Promise.all(
      Array.from({ length: 50 }, () => ask(hello(), [['authorization', `Bearer pcl_${'x'.repeat(46)}`]])),
    );
  }
  const { user, system } = process.cpuUsage(cpu);
  expect((await chat(gateway, hello(), { token: key.token })).status).toBe(401);
  expect((await chat(gateway, hello())).status).toBe(200);
  const all = await written();
  expect(all.length - before).toBeLessThanOrEqual(1 + 200);
  expect(all.filter(({ keyId }) => keyId === key.id)).toHaveLength(1);
  expect(size() - begun).toBeLessThan(4_000_000);
  // Client and server of 3,000 requests: what they took before there were rows.
  expect((user + system) / 3000).toBeLessThan(20_000);
});
