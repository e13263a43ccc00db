// The walk of a team, by the README's commands: two providers, members with budgets, names of their own for models, limits, an
// application that connects, a runaway loop, who spent what, why a call was slow, new secrets everywhere, an upgrade.
import { execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { existsSync, rmSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { postForm, REDIRECT, register } from '../http/oauth/application.ts';
import { Browser } from '../support/browser.ts';
import { bearer, JSON_TYPE } from '../support/chat.ts';
import { newDataDir } from '../support/gateway.ts';
import { type Answer, send } from '../support/request.ts';
import { completion, failure, json, startUpstream, type TestUpstream, upstreamEnv } from '../support/upstream.ts';
import { portcullis, ROOT, type ServingProcess, serve, serveCheckout, serveTests } from './running.ts';

/** Twelve people: the founder, who is the owner, and eleven developers. */
const DEVELOPERS = ['anna', 'ben', 'carla', 'dan', 'eva', 'finn', 'gina', 'hugo', 'ida', 'jan', 'kim'];

let dataDir: string;
let north: TestUpstream;
let south: TestUpstream;
let env: Readonly<Record<string, string>> & { readonly DATA_DIR: string };
let running: ServingProcess;
const tokens = new Map<string, string>();

beforeAll(async () => {
  dataDir = newDataDir();
  [north, south] = await Promise.all([startUpstream(), startUpstream()]);
  north.begin(json(completion('From the north')));
  south.begin(json(completion('From the south')));
  env = {
    DATA_DIR: dataDir,
    TRUSTED_PROXIES: 'none',
    ...upstreamEnv('north', north.origin, 'north-mini,north-large', 'north-mini=1/2,north-large=10/20'),
    ...upstreamEnv('south', south.origin, 'south-mini', 'south-mini=2/4'),
  };
  running = await serveTests(env, []);
});

afterAll(async () => {
  await stop();
  await Promise.all([north.close(), south.close()]);
  rmSync(dataDir, { recursive: true, force: true });
});

async function stop(): Promise<void> {
  running.child.kill('SIGTERM');
  await running.ended;
}

/** A command that must succeed. @returns its output */
async function command(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await portcullis(args, env);
  expect([args.join(' '), code, code === 0 ? '' : stderr]).toEqual([args.join(' '), 0, '']);
  return stdout;
}

/** The answer of a command with `--json`. */
const asked = async (...args: string[]): Promise<Record<string, unknown>> =>
  Object(JSON.parse(await command(...args, '--json')));

/** A new key of a member, by its description. */
async function createKey(owner: string, ...limits: string[]): Promise<void> {
  const { key } = await asked(
    'keys',
    'create',
    '--description',
    `${owner} lab`,
    '--owner',
    `${owner}@example.com`,
    ...limits,
  );
  tokens.set(owner, String(Object(key).token));
}

const chat = (owner: string, model: string, more: object = {}): Promise<Answer> =>
  send(running.origin, {
    method: 'POST',
    path: '/v1/chat/completions',
    headers: [bearer(tokens.get(owner) ?? ''), JSON_TYPE, ['x-no-cache', 'true']],
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }], max_tokens: 100, ...more }),
  });

const servedBy = ({ json: body }: Answer): unknown => Object(Object(body).metadata).used_provider;
const errorOf = ({ json: body }: Answer): Record<string, unknown> => Object(Object(body).error);

it('each developer has a budget of their own and a key', { timeout: 120_000 }, async () => {
  for (const name of DEVELOPERS) {
    await command('members', 'add', `${name}@example.com`, '--name', name);
    await command('budgets', 'set', '--member', `${name}@example.com`, '--period-limit', '50', '--period', '1month');
    await createKey(name, '--limit', '25');
  }
  expect((await chat('anna', 'north-mini')).status).toBe(200);
});

it('a name of the team leads to one model, and to the other when that fails', async () => {
  await command('aliases', 'set', 'fast', 'north-mini', 'south-mini');
  expect(servedBy(await chat('anna', 'fast'))).toBe('north');
  north.begin(failure(500, 'down'));
  const answer = await chat('anna', 'fast');
  north.begin(json(completion('From the north')));
  expect([answer.status, servedBy(answer)]).toEqual([200, 'south']);
  expect(answer.json).toMatchObject({ metadata: { requested_model: 'fast', used_model: 'south-mini' } });
});

it('a loop of one key meets its own limit, and its colleagues are served', async () => {
  await command('keys', 'update', 'ben lab', '--rpm', '5');
  const loop = await Promise.all(Array.from({ length: 30 }, () => chat('ben', 'north-mini')));
  const colleagues = await Promise.all(['carla', 'dan', 'eva'].map((name) => chat(name, 'north-mini')));
  const refused = loop.find(({ status }) => status === 429);
  expect(loop.filter(({ status }) => status === 200)).toHaveLength(5);
  expect(refused === undefined ? undefined : errorOf(refused).code).toBe('rate_limit_exceeded');
  expect(colleagues.map(({ status }) => status)).toEqual([200, 200, 200]);
});

it('an application that a developer connects spends within what they may spend', async () => {
  const link = await asked('members', 'sign-in-link', 'carla@example.com');
  const place = new URL(String(Object(link.signInLink ?? link.link).url ?? link.url));
  const browser = new Browser(running.origin);
  await browser.get(place.pathname + place.search);
  await browser.submit('/oauth/interaction/link', { action: 'continue' });

  const { body: client } = await register(running.origin, {
    client_name: 'Assistant',
    redirect_uris: [REDIRECT],
    token_endpoint_auth_method: 'none',
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
  });
  const verifier = randomBytes(32).toString('base64url');
  const asking = new URLSearchParams({
    response_type: 'code',
    client_id: String(client.client_id),
    redirect_uri: REDIRECT,
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
  });
  const consent = (await browser.get(`/oauth/authorize?${asking}`)).headers.location ?? '';
  const page = await browser.get(consent);
  const [, preselected = ''] = /<option value="(key_[^"]+)" selected>/.exec(page.text) ?? [];
  expect(preselected).toMatch(/^key_/);
  const allowed = await browser.submit(consent, { key: preselected, answer: 'allow' });
  const back = await browser.get(new URL(allowed.headers.location ?? '').pathname);
  const { body } = await postForm(running.origin, '/oauth/token', {
    grant_type: 'authorization_code',
    client_id: String(client.client_id),
    code: new URL(back.headers.location ?? '').searchParams.get('code') ?? '',
    redirect_uri: REDIRECT,
    code_verifier: verifier,
  });
  const answer = await send(running.origin, {
    method: 'POST',
    path: '/mcp',
    headers: [bearer(String(body.access_token)), JSON_TYPE],
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'chat', arguments: { model: 'fast', messages: [{ role: 'user', content: 'Hello' }] } },
    }),
  });
  expect(answer.json).toMatchObject({ result: { content: [{ type: 'text', text: 'From the north' }] } });
});

it('the report of a month shows what a member spent, to the last digit', async () => {
  const { usage } = await asked(
    'usage',
    '--from',
    'month',
    '--by',
    'total',
    '--group-by',
    'member',
    '--member',
    'anna@example.com',
  );
  // Two calls of north-mini and one of south-mini, each of 10 tokens in and 5 out.
  expect(usage).toMatchObject({ rows: [{ calls: 3, cost: '0.00008' }] });
});

it('a slow call explains itself', async () => {
  south.begin(async (response, received) => {
    await sleep(700);
    await json(completion('At last'))(response, received);
  });
  const { headers } = await chat('dan', 'south-mini');
  const listed = await command('calls', 'list', '--slower-than', '500ms');
  expect(listed).toContain('south-mini');
  expect(await command('calls', 'show', String(headers['x-request-id']))).toMatch(
    /[\d,]+ ms: [\d,]+ south, \d+ gateway/,
  );
});

it('a request that was refused before it was a call explains itself too', async () => {
  const { headers, status } = await chat('nobody', 'north-mini');
  expect(status).toBe(401);
  await sleep(1_500);
  expect(await command('calls', 'show', String(headers['x-request-id']))).toContain('invalid_api_key');
});

it('the providers are checked by one command', async () => {
  expect(await command('providers', 'check')).toMatch(/north[\s\S]+south/);
});

describe('new secrets everywhere', () => {
  it('every key is rolled by one command, and the old secrets end', async () => {
    const before = tokens.get('eva') ?? '';
    const lines = (await command('keys', 'roll', '--all', '--json')).trimEnd().split('\n');
    expect(lines).toHaveLength(DEVELOPERS.length + 1);
    for (const line of lines) {
      const { description, token } = JSON.parse(line);
      tokens.set(description.replace(' lab', ''), token);
    }
    expect((await chat('eva', 'north-mini')).status).toBe(200);
    tokens.set('before', before);
    expect((await chat('before', 'north-mini')).status).toBe(401);
  });

  it("the server's own secrets are replaced while it serves", async () => {
    await command('secrets', 'rotate-pepper');
    await command('secrets', 'rotate-encryption-key');
    expect((await chat('eva', 'north-mini')).status).toBe(200);
  });
});

it('an upgrade from the last commit with other tables keeps keys and sums', async () => {
  if (!existsSync(path.join(ROOT, '.git'))) return;
  const folder = newDataDir();
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const checkout = path.join(folder, 'checkout');
  const git = (...args: string[]): string => execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' }).trim();
  const revision = git('log', '-1', '--format=%H', '--', 'src/store/migrations');
  git('clone', '--quiet', '--no-checkout', ROOT, checkout);
  git('-C', checkout, 'checkout', '--quiet', `${revision}^`);
  symlinkSync(path.join(ROOT, 'node_modules'), path.join(checkout, 'node_modules'));
  const upgraded = { DATA_DIR: path.join(folder, 'data') };

  const before = await serveCheckout(checkout, upgraded);
  const ask = ({ origin }: ServingProcess): Promise<Answer> =>
    send(origin, {
      method: 'POST',
      path: '/v1/chat/completions',
      headers: [bearer(before.key ?? ''), JSON_TYPE, ['x-no-cache', 'true']],
      body: JSON.stringify({ model: 'sandbox-paid', messages: [{ role: 'user', content: 'Hello' }] }),
    });
  const served = [(await ask(before)).status];
  before.child.kill('SIGTERM');
  await before.ended;
  served.push((await ask(await serve(upgraded))).status);

  expect(served).toEqual([200, 200]);
  const { stdout } = await portcullis(['usage', '--by', 'total', '--json'], upgraded);
  expect(JSON.parse(stdout)).toMatchObject({ usage: { rows: [{ calls: 2, cost: '0.000036' }] } });
});
