// `portcullis providers check`, and the check of the environment's credentials after a start.

import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { newDataDir, startGateway, type TestGateway } from '../support/gateway.ts';
import { send } from '../support/request.ts';
import { TLS } from '../support/tls-gateway.ts';
import { upstreamEnv } from '../support/upstream.ts';
import { type CommandLine, createCommandLine, type Outcome, runIn } from './command-line.ts';

type Serve = (request: IncomingMessage, response: ServerResponse, body: string) => void;

const servers: { close(): void }[] = [];
let asked: string[] = [];

/** A server on loopback; what it was asked stands in `asked`. */
async function serving(serve: Serve, tls?: { key: string; cert: string }): Promise<string> {
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    let body = '';
    for await (const piece of request) body += String(piece);
    asked.push(
      `${request.method} ${request.url} ${request.headers.authorization ?? request.headers['x-api-key'] ?? request.headers['x-goog-api-key'] ?? '-'}`,
    );
    serve(request, response, body);
  };
  const server = tls === undefined ? createServer(handle) : createTlsServer(tls, handle);
  servers.push({
    close() {
      server.closeAllConnections();
      server.close();
    },
  });
  server.listen(0, 'localhost');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return `${tls === undefined ? 'http' : 'https'}://localhost:${address.port}`;
}

const answer =
  (status: number, body: object | string): Serve =>
  (_, response) =>
    void response
      .writeHead(status, { 'content-type': 'application/json' })
      .end(typeof body === 'string' ? body : JSON.stringify(body));

/** A server that has a list of models for one credential. */
const listing =
  (credential: string): Serve =>
  (request, response) =>
    answer(request.headers.authorization === `Bearer ${credential}` ? 200 : 401, {
      data: [],
      error: 'wrong key secret-of-acme',
    })(request, response, '');

let portcullis: CommandLine;
beforeEach(async () => {
  asked = [];
  portcullis = await createCommandLine();
});
afterEach(() => {
  portcullis.close();
  for (const server of servers.splice(0)) server.close();
});

interface Row {
  readonly provider: string;
  readonly credential: string;
  readonly works: boolean;
  readonly cause: string | null;
  readonly address: string;
}

const checksOf = ({ stdout }: Outcome): Row[] => JSON.parse(stdout).checks;
const brief = (outcome: Outcome) =>
  checksOf(outcome).map(({ provider, credential, cause }) => [provider, credential, cause]);

describe('portcullis providers check', () => {
  it('tries each credential of the environment, says why one does not work, and ends with 1 then', async () => {
    const good = await serving(listing('secret-of-acme'));
    const wrong = await serving(answer(401, { error: { message: 'Incorrect API key provided: secret-of-bad' } }));
    const env = {
      ...upstreamEnv('acme', good, 'm'),
      ...upstreamEnv('bad', wrong, 'm'),
      ...upstreamEnv('gone', 'http://localhost:1', 'm'),
      ANTHROPIC_API_KEY: 'sk-ant-x',
      ANTHROPIC_BASE_URL: await serving(answer(200, { data: [] })),
      GOOGLE_API_KEY: 'AIza-x',
      GOOGLE_BASE_URL: await serving(
        answer(400, { error: { code: 400, message: 'no', details: [{ reason: 'API_KEY_INVALID' }] } }),
      ),
    };
    const outcome = await portcullis.runWith(env, 'providers', 'check', '--json');
    expect([outcome.code, outcome.stderr]).toEqual([1, 'portcullis: 3 of 5 credentials do not work.\n']);
    expect(brief(outcome)).toEqual([
      ['anthropic', 'ANTHROPIC_API_KEY', null],
      ['google', 'GOOGLE_API_KEY', 'credential_refused'],
      ['acme', 'UPSTREAM_ACME_API_KEY', null],
      ['bad', 'UPSTREAM_BAD_API_KEY', 'credential_refused'],
      ['gone', 'UPSTREAM_GONE_API_KEY', 'connection_refused'],
    ]);
    expect(asked.sort()).toEqual([
      'GET /models?pageSize=1 AIza-x',
      'GET /v1/models Bearer secret-of-acme',
      'GET /v1/models Bearer secret-of-bad',
      'GET /v1/models?limit=1 sk-ant-x',
    ]);
    const one = await portcullis.runWith(env, 'providers', 'check', 'acme');
    expect([one.code, one.stdout]).toEqual([
      0,
      expect.stringMatching(/^acme +UPSTREAM_ACME_API_KEY +works +\d+ +http:\/\/localhost:\d+\/v1 +-$/m),
    ]);
    const all = await portcullis.runWith(env, 'providers', 'check');
    expect(all.stdout).toMatch(
      /^bad +UPSTREAM_BAD_API_KEY +credential_refused .* The provider refused the credential\.$/m,
    );
    expect(`${outcome.stdout}${all.stdout}${all.stderr}`).not.toMatch(/secret-of|sk-ant-x|AIza-x/);
    expect((await portcullis.runWith(env, 'providers', 'check', 'nobody')).stderr).toContain(
      'no credential for a provider "nobody"',
    );
  });

  it('asks for a chat that is refused where a server has no list of models', async () => {
    const noList: Serve = (request, response) =>
      request.method === 'GET'
        ? answer(404, 'not found')(request, response, '')
        : answer(request.headers.authorization === 'Bearer secret-of-acme' ? 400 : 401, {
            error: { message: 'model is required' },
          })(request, response, '');
    const env = {
      ...upstreamEnv('acme', await serving(noList), 'm'),
      ...upstreamEnv('other', await serving(noList), 'm'),
    };
    expect(brief(await portcullis.runWith(env, 'providers', 'check', '--json'))).toEqual([
      ['acme', 'UPSTREAM_ACME_API_KEY', null],
      ['other', 'UPSTREAM_OTHER_API_KEY', 'credential_refused'],
    ]);
  });

  it('names a wrong path, a certificate, a redirect and a server that hangs up', async () => {
    const expired = readFileSync(path.join(import.meta.dirname, '../fixtures/tls/expired.pem'), 'utf8');
    const env = {
      ...upstreamEnv('page', await serving(answer(404, '<html>')), 'm'),
      ...upstreamEnv('selfsigned', await serving(answer(200, {}), TLS), 'm'),
      ...upstreamEnv('expired', await serving(answer(200, {}), { key: TLS.key, cert: expired }), 'm'),
      ...upstreamEnv(
        'moved',
        await serving((_, response) => void response.writeHead(301, { location: 'https://elsewhere.example' }).end()),
        'm',
      ),
      ...upstreamEnv('cut', await serving((_, response) => void response.destroy()), 'm'),
    };
    expect(
      brief(await portcullis.runWith(env, 'providers', 'check', '--json')).map(([name, , cause]) => [name, cause]),
    ).toEqual([
      ['cut', 'connection_reset'],
      ['expired', expect.stringMatching(/^tls_/)],
      ['moved', 'redirected'],
      ['page', 'wrong_path'],
      ['selfsigned', 'tls_self_signed'],
    ]);
  });

  it('tries provider keys and custom providers of the organization, at public addresses only', async () => {
    const origin = await serving(listing('sk-right-0123456789-0123456789'));
    const add = (...args: string[]) => portcullis.runWith({ ALLOW_PRIVATE_UPSTREAMS: new URL(origin).host }, ...args);
    const input = (token: string, ...args: string[]) => portcullis.runWithInput(token, ...args);
    expect((await add('custom-providers', 'add', 'own', '--base-url', `${origin}/v1`)).code).toBe(0);
    for (const [label, token] of [
      ['right', 'sk-right-0123456789-0123456789'],
      ['wrong', 'sk-wrong-0123456789-0123456789'],
    ] as const) {
      const added = await input(token, 'provider-keys', 'add', 'custom:own', '--label', label, '--token-stdin');
      expect([added.code, added.stderr]).toEqual([0, '']);
    }
    const checked = await add('providers', 'check', '--json');
    expect(brief(checked)).toEqual([
      ['own', 'right', null],
      ['own', 'wrong', 'credential_refused'],
    ]);
    expect(brief(await portcullis.run('providers', 'check', 'right', '--json'))).toEqual([
      ['own', 'right', 'address_refused'],
    ]);
  });

  it('works before the first start, with the environment alone', async () => {
    const env = upstreamEnv('acme', await serving(listing('secret-of-acme')), 'm');
    const outcome = await runIn(newDataDir(), env, 'providers', 'check', '--json');
    expect([outcome.code, brief(outcome)]).toEqual([0, [['acme', 'UPSTREAM_ACME_API_KEY', null]]]);
  });
});

describe('after a start', () => {
  let gateway: TestGateway | undefined;
  afterEach(async () => {
    await gateway?.close();
    gateway = undefined;
  });
  const counted = async (): Promise<string[]> => {
    const { text } = await send(String(gateway?.management), { path: '/metrics' });
    return text
      .split('\n')
      .filter((line) => line.startsWith('portcullis_provider_checks_total{'))
      .sort();
  };

  it('each credential of the environment is tried once, and a wrong one is counted', async () => {
    const env = {
      ...upstreamEnv('acme', await serving(listing('secret-of-acme')), 'm'),
      ...upstreamEnv('bad', await serving(listing('another')), 'm'),
      ...upstreamEnv('gone', 'http://localhost:1', 'm'),
    };
    gateway = await startGateway({ ...env, CHECK_PROVIDERS: 'on' });
    await expect
      .poll(counted)
      .toEqual([
        'portcullis_provider_checks_total{provider="acme",result="works"} 1',
        'portcullis_provider_checks_total{provider="bad",result="credential_refused"} 1',
        'portcullis_provider_checks_total{provider="gone",result="connection_refused"} 1',
      ]);
    expect(asked).toHaveLength(2);
  });

  it('a start waits for no provider, and stops while one hangs', async () => {
    const env = upstreamEnv('acme', await serving(() => undefined), 'm');
    gateway = await startGateway({ ...env, CHECK_PROVIDERS: 'on' });
    await expect.poll(() => asked.length).toBe(1);
    const startedAt = performance.now();
    await gateway.close();
    gateway = undefined;
    expect(performance.now() - startedAt).toBeLessThan(5000);
  });

  it('none is tried where there is none, or where CHECK_PROVIDERS is off', async () => {
    gateway = await startGateway({ ...upstreamEnv('acme', await serving(listing('x')), 'm'), CHECK_PROVIDERS: 'off' });
    expect([await counted(), asked]).toEqual([[], []]);
  });
});
