// A customer's own credential, from the master API to the provider and nowhere else.
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { bearer, JSON_TYPE } from '../support/chat.ts';
import { newDataDir } from '../support/gateway.ts';
import { send } from '../support/request.ts';
import { completion, failure, json, startUpstream, type TestUpstream } from '../support/upstream.ts';
import { serve } from './running.ts';

const SECRET = 'the-very-own-credential-0123456789';

let dataDir: string;
let upstream: TestUpstream;

beforeEach(async () => {
  dataDir = newDataDir();
  upstream = await startUpstream();
});

afterEach(async () => {
  await upstream.close();
  rmSync(dataDir, { recursive: true, force: true });
});

/** Answers of one running process: what they say, as JSON. */
const post = async (origin: string, target: string, token: string, body: object) => {
  const headers = [bearer(token), JSON_TYPE];
  const { status, text } = await send(origin, { method: 'POST', path: target, headers, body: JSON.stringify(body) });
  return { status, text, json: JSON.parse(text) };
};

const chat = { model: 'acme/org/m', messages: [{ role: 'user', content: 'Hello' }] };

it('a credential reaches its provider, and no file, log or answer, nor a private address that is not opened', async () => {
  const env = { DATA_DIR: dataDir, LOG_LEVEL: 'debug', ACCESS_LOG: path.join(dataDir, 'access.log') };
  const first = await serve({ ...env, ALLOW_PRIVATE_UPSTREAMS: new URL(upstream.origin).host });
  const [, master = ''] = /(pclm_\w+)/.exec(first.said()) ?? [];
  const key = first.key ?? '';
  const answers: string[] = [];
  const add = async (resource: string, body: object) => {
    const { status, text, json: made } = await post(first.management, `/v1/master/${resource}`, master, body);
    answers.push(text);
    expect(status).toBe(201);
    return Object.values<{ id: string }>(made)[0]?.id;
  };
  const customProviderId = await add('custom-providers', { name: 'acme', baseUrl: `${upstream.origin}/v1` });
  await add('custom-models', { customProviderId, model: 'org/m' });
  const providerKeyId = await add('provider-keys', { provider: 'custom:acme', label: 'Ours', token: SECRET });

  upstream.begin(json(completion('Hi')));
  const answer = await post(first.origin, '/v1/chat/completions', key, chat);
  expect(answer.status).toBe(200);
  expect(answer.json.metadata.routing).toMatchObject([
    { provider: 'acme', credentialSource: 'byok', providerKeyId, providerKeyLabel: 'Ours', succeeded: true },
  ]);
  expect(upstream.received.map(({ path: at, headers }) => [at, headers.authorization])).toEqual([
    ['/v1/chat/completions', `Bearer ${SECRET}`],
  ]);
  upstream.begin(failure(400, `The key ${SECRET} may not do that.`));
  answers.push(answer.text, (await post(first.origin, '/v1/chat/completions', key, chat)).text);
  first.child.kill('SIGTERM');
  const ended = await first.ended;

  const second = await serve(env);
  upstream.begin(json(completion('Hi')));
  const refused = await post(second.origin, '/v1/chat/completions', key, chat);
  expect([refused.status, refused.json.error.code, upstream.received]).toEqual([502, 'upstream_error', []]);
  answers.push(refused.text);
  second.child.kill('SIGTERM');
  const { stdout, stderr } = await second.ended;

  const files = readdirSync(dataDir, { recursive: true, withFileTypes: true })
    .filter((each) => each.isFile())
    .map(({ name, parentPath }) => [name, readFileSync(path.join(parentPath, name))] as const);
  expect(files.map(([name]) => name)).toEqual(expect.arrayContaining(['access.log', 'portcullis.sqlite']));
  const said = [...answers, ended.stdout, ended.stderr, stdout, stderr].map((text) => ['', Buffer.from(text)] as const);
  expect([...files, ...said].filter(([, bytes]) => bytes.includes(SECRET)).map(([name]) => name)).toEqual([]);
});
