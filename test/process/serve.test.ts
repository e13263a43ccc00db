// The real process: start, first run, lock, stop, crash.
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { validator } from '../../src/lib/schemas.ts';
import { databasePath } from '../../src/store/db/data-dir.ts';
import { type Database, openDatabase } from '../../src/store/db/database.ts';
import { loadSecrets } from '../../src/store/secrets/secrets.ts';
import { bearer, JSON_TYPE } from '../support/chat.ts';
import { newDataDir } from '../support/gateway.ts';
import { type Answer, send } from '../support/request.ts';
import { callRows } from '../support/rows.ts';
import { completion, json, startUpstream, upstreamEnv } from '../support/upstream.ts';
import { portcullis, saying, serve } from './running.ts';

const validateRuleCreateAnswer = validator('RuleCreateAnswer');

let dataDir: string;
let env: Readonly<Record<string, string>> & { readonly DATA_DIR: string };

beforeEach(() => {
  dataDir = newDataDir();
  env = { DATA_DIR: dataDir };
});

afterEach(() => rmSync(dataDir, { recursive: true, force: true }));

/** Answers are not taken from the cache: equal requests are to be dispatched, each. */
const chat = (origin: string, token: string | undefined, model: string): Promise<Answer> =>
  send(origin, {
    method: 'POST',
    path: '/v1/chat/completions',
    headers: [bearer(token ?? ''), JSON_TYPE, ['x-no-cache', 'true']],
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'A secret prompt' }] }),
  });

function withDatabase<T>(work: (db: Database) => T): T {
  const db = openDatabase(databasePath(dataDir), { readonly: true });
  try {
    return work(db);
  } finally {
    db.close();
  }
}

/** Waits until a call has its row. */
async function callOpened(): Promise<void> {
  while (states().length === 0) await sleep(10);
}

const states = (): string[] => withDatabase((db) => callRows({ db }).map(({ state }) => state));

describe('the first start', () => {
  it('prints a link that signs the owner in, which a later start does not', async () => {
    const first = await serve(env);
    const [, link = ''] = /\n {2}(http:\S+\/oauth\/interaction\/link\?token=pcls_\w+)\n/.exec(first.said()) ?? [];
    const { origin, pathname, search } = new URL(link);
    expect(origin).toBe(first.origin);
    const { status, text } = await send(origin, { path: pathname + search });
    expect([status, text]).toEqual([200, expect.stringContaining('<strong>owner@localhost</strong>')]);
    first.child.kill('SIGTERM');
    await first.ended;
    expect((await serve(env)).said()).not.toContain('pcls_');
  });

  it('prints the secrets once, and a curl command that works as pasted', async () => {
    const first = await serve(env);
    const command = /Try it:\s+(curl[\s\S]+)$/.exec(first.said())?.[1];
    if (command === undefined) throw new Error('no command was printed');

    // What a shell makes of the command, without asking for a curl on this machine.
    const { stdout } = await promisify(execFile)('sh', ['-c', `curl() { printf '%s\\0' "$@"; }; ${command}`]);
    const [silent, url = '', h1, one = '', h2, other = '', d, body = ''] = stdout.split('\0');
    const headers = [one, other].map((header) => /^([\w-]+): (.+)$/.exec(header)?.slice(1) ?? []);
    const { pathname, origin } = new URL(url);
    const answer = await send(origin, {
      method: 'POST',
      path: pathname,
      headers: headers.map(([name = '', value = '']) => [name, value]),
      body,
    });

    expect([silent, h1, h2, d, origin]).toEqual(['-s', '-H', '-H', '-d', first.origin]);
    expect(answer.json).toMatchObject({
      object: 'chat.completion',
      choices: [{ message: { content: 'You said: Hello' } }],
      usage: { total_tokens: 6, cost: 0.000018 },
      metadata: { used_provider: 'sandbox', routing: [{ succeeded: true }] },
    });
    expect(first.said()).toMatch(/gateway key {2}pcl_[0-9A-Za-z]{46}\n/);
    expect(first.said()).toMatch(/master key {3}pclm_[0-9A-Za-z]{46}\n/);
    first.child.kill('SIGTERM');
    await first.ended;
    const second = await serve(env);
    expect(second.said()).not.toContain('pcl');
    expect((await chat(second.origin, first.key, 'sandbox-free')).status).toBe(200);
  });

  it("keeps the server's secrets to their owner", async () => {
    const deep = path.join(dataDir, 'not', 'there', 'yet');
    await serve({ DATA_DIR: deep });

    const modes = ['.', 'secrets.json'].map((file) => (statSync(path.join(deep, file)).mode & 0o777).toString(8));
    expect(modes).toEqual(['700', '600']);
  });
});

describe('a start that cannot be', () => {
  it('on a data directory that another process uses ends with one line', async () => {
    await serve(env);

    const { code, stdout, stderr } = await portcullis(['serve'], { ...env, PORT: '0', MANAGEMENT_PORT: '0' });

    expect([code, stdout, stderr]).toEqual([
      1,
      '',
      `portcullis: Another process is already using the data directory ${dataDir}.\n`,
    ]);
  });

  it('is preceded by a line for each variable that is not read and looks like ours, without its value', async () => {
    const misnamed = { GEMINI_API_KEY: 'AIza-secret', TRUSTED_PROXYS: 'sk-secret' };
    const { code, stderr } = await portcullis(['serve'], { ...env, ...misnamed, PORT: 'eighty' });

    expect([code, stderr.split('\n')]).toEqual([
      1,
      [
        'portcullis: warning: GEMINI_API_KEY is not read: did you mean GOOGLE_API_KEY?',
        'portcullis: warning: TRUSTED_PROXYS is not read: did you mean TRUSTED_PROXIES?',
        expect.stringMatching(/^portcullis: PORT must be /),
        '',
      ],
    ]);
  });

  it('with a database but without its secrets ends with one line, and makes no others', async () => {
    const first = await serve(env);
    first.child.kill('SIGTERM');
    await first.ended;
    const secrets = path.join(dataDir, 'secrets.json');
    rmSync(secrets);

    const { code, stdout, stderr } = await portcullis(['serve'], { ...env, PORT: '0', MANAGEMENT_PORT: '0' });

    expect([code, stdout, stderr, existsSync(secrets)]).toEqual([
      1,
      '',
      `portcullis: There are no secrets at ${secrets}: without them no key in the database can be verified. Restore the file.\n`,
      false,
    ]);
  });

  it('with a wrong variable ends with one line that names it', async () => {
    const { code, stdout, stderr } = await portcullis(['serve'], { ...env, PORT: 'eighty' });

    expect([code, stdout, stderr.split('\n').length]).toEqual([1, '', 2]);
    expect(stderr).toMatch(/^portcullis: PORT must be /);
  });

  it('with two models of one upstream that would have one id ends with one line that names both', async () => {
    const upstream = upstreamEnv('gpu', 'http://127.0.0.1:1', 'a/b,other,a--b');

    const { code, stdout, stderr } = await portcullis(['serve'], { ...env, ...upstream });

    expect([code, stdout, stderr, existsSync(databasePath(dataDir))]).toEqual([
      1,
      '',
      'portcullis: UPSTREAM_GPU_MODELS names a/b and a--b, which have the same id here: a--b.\n',
      false,
    ]);
  });

  it.each([
    ['DATA_DIR', 'a file in its place', 'DATA_DIR: cannot write '],
    ['lock.sqlite', 'a folder in the place of the lock', 'lock.sqlite: unable to open database file.'],
    ['portcullis.sqlite', 'a folder in the place of the database', 'portcullis.sqlite: unable to open database file.'],
  ])('on a data directory whose %s is %s ends with one line that names it', async (name, _, fault) => {
    const folder = path.join(dataDir, 'unfit');
    if (name === 'DATA_DIR') writeFileSync(folder, '');
    else {
      mkdirSync(path.join(folder, name), { recursive: true });
      loadSecrets(folder, { create: true });
    }

    const { code, stdout, stderr } = await portcullis(['serve'], { DATA_DIR: folder, PORT: '0', MANAGEMENT_PORT: '0' });

    expect([code, stdout, stderr.split('\n').length]).toEqual([1, '', 2]);
    expect(stderr).toContain(folder);
    expect(stderr).toContain(fault);
  });

  it('on a database that is none ends with one line that names it and says what to do', async () => {
    const file = path.join(dataDir, 'portcullis.sqlite');
    loadSecrets(dataDir, { create: true });
    writeFileSync(file, 'This text is no database, and long enough to be seen as none. '.repeat(20));

    const { code, stderr } = await portcullis(['serve'], { ...env, PORT: '0', MANAGEMENT_PORT: '0' });

    expect([code, stderr]).toEqual([
      1,
      `portcullis: ${file}: file is not a database. Restore a backup (portcullis restore <folder> --force), or take another DATA_DIR.\n`,
    ]);
  });

  it('with an access log that cannot be written ends with one line that names it', async () => {
    const log = path.join(dataDir, 'a-file', 'access.log');
    writeFileSync(path.dirname(log), '');

    const { code, stderr } = await portcullis(['serve'], { ...env, ACCESS_LOG: log, PORT: '0', MANAGEMENT_PORT: '0' });

    expect([code, stderr.split('\n').length]).toEqual([1, 2]);
    expect(stderr).toContain(`portcullis: ACCESS_LOG: cannot write ${log}: `);
  });

  it('on an address that is taken names the variable, releases the data directory, and keeps the first secrets for later', async () => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    const address = other.address();
    const port = typeof address === 'object' ? String(address?.port) : '';

    const { code, stderr } = await portcullis(['serve'], { ...env, PORT: port, MANAGEMENT_PORT: '0' });

    other.close();
    expect([code, stderr]).toEqual([
      1,
      `portcullis: PORT: cannot listen on 127.0.0.1:${port}: the address is in use.\n`,
    ]);
    await saying(await serve(env), /gateway key {2}pcl_\w+\n {2}master key {3}pclm_\w+\n/);
  });
});

it('a start whose clock is behind the newest call warns by how much', async () => {
  const first = await serve(env);
  expect((await chat(first.origin, first.key, 'sandbox-paid')).status).toBe(200);
  first.child.kill('SIGTERM');
  await first.ended;
  const even = await serve(env);
  expect(even.said()).not.toContain('the clock is behind');
  even.child.kill('SIGTERM');
  await even.ended;
  const db = openDatabase(databasePath(dataDir));
  db.connection.exec('UPDATE ledger SET number = number + 3600 * 1000 * 2048');
  db.close();
  const said = await saying(await serve(env), /the clock is behind the newest call.*\n/);
  const [, behindSeconds] = /"behindSeconds":(\d+)/.exec(said) ?? [];
  expect(Number(behindSeconds)).toBeGreaterThan(3500);
  expect(Number(behindSeconds)).toBeLessThanOrEqual(3600);
});

describe('a second process', () => {
  it('writes a rule that holds on the very next call, and removes it again', async () => {
    const { origin, key } = await serve(env);
    expect((await chat(origin, key, 'sandbox-paid')).status).toBe(200);

    const added = await portcullis(['rules', 'add', '--organization', 'deny_models', 'sandbox-paid', '--json'], env);
    const answer: unknown = JSON.parse(added.stdout);
    if (!validateRuleCreateAnswer(answer)) throw new Error(`no rule: ${added.stdout}`);
    const { id } = answer.rule;
    const denied = await chat(origin, key, 'sandbox-paid');
    await portcullis(['rules', 'remove', id], env);

    expect([denied.status, denied.json]).toEqual([
      403,
      {
        error: {
          message: `Access denied: model not allowed: sandbox-paid is denied by rule ${id}. This is an organization IAM rule set by the org admin.`,
          type: 'invalid_request_error',
          param: null,
          code: 'permission_denied',
        },
      },
    ]);
    expect((await chat(origin, key, 'sandbox-paid')).status).toBe(200);
  });

  it('makes and disables keys that the serving one knows at once', async () => {
    const { origin } = await serve(env);
    const made = await portcullis(['keys', 'create', '--description', 'CI', '--json'], env);
    const token = /"token": "(pcl_\w+)"/.exec(made.stdout)?.[1];
    const before = await chat(origin, token, 'sandbox-free');

    await portcullis(['keys', 'disable', 'CI'], env);

    expect([before.status, (await chat(origin, token, 'sandbox-free')).json]).toEqual([
      200,
      {
        error: {
          message: 'This API key is disabled.',
          type: 'invalid_request_error',
          param: null,
          code: 'api_key_disabled',
        },
      },
    ]);
  });
});

describe('SIGTERM', () => {
  it('lets what runs be finished and settled, takes nothing new, and ends with 0', async () => {
    const { origin, key, child, ended, ...running } = await serve(env);
    const slow = chat(origin, key, 'sandbox-slow');
    await callOpened();

    child.kill('SIGTERM');
    await saying({ child, ended, ...running }, /SIGTERM: finishing what runs\.\n/);
    const refused = await chat(origin, key, 'sandbox-free').catch((error: NodeJS.ErrnoException) => error.code);

    const { status, json: body } = await slow;
    expect([status, body]).toMatchObject([200, { choices: [{ message: { content: 'You said: A secret prompt' } }] }]);
    // Reset: it had reached the listener's queue when the listener closed.
    expect(['ECONNREFUSED', 'ECONNRESET']).toContain(refused);
    expect(await ended).toMatchObject({ code: 0, signal: null, stderr: '' });
    expect(states()).toEqual(['settled']);
  });

  it('twice ends at once; the call that was open is recovered at the next start', async () => {
    const { origin, key, child, ended, ...running } = await serve(env);
    const cut = chat(origin, key, 'sandbox-slow').catch(() => 'cut');
    await callOpened();

    child.kill('SIGTERM');
    await saying({ child, ended, ...running }, /SIGTERM/);
    child.kill('SIGTERM');

    expect([await cut, (await ended).code]).toEqual(['cut', 143]);
    expect(states()).toEqual(['open']);
    await serve(env);
    expect(states()).toEqual(['recovered']);
  });
});

describe('the death of the process', () => {
  it('loses nothing that was acknowledged, frees the data directory, and leaves open calls to be recovered', async () => {
    const upstream = await startUpstream();
    const arrived = Promise.withResolvers<void>();
    const settings = { ...env, ...upstreamEnv('acme', upstream.origin, 'large', 'large=2/8') };
    const first = await serve(settings);
    upstream.begin(json(completion('Hi')));
    const answers = await Promise.all(Array.from({ length: 20 }, () => chat(first.origin, first.key, 'large')));
    upstream.begin(() => arrived.resolve());
    const cut = chat(first.origin, first.key, 'large').catch(() => 'cut');
    await arrived.promise;

    first.child.kill('SIGKILL');
    await first.ended;

    const second = await serve(settings);
    const rows = withDatabase((db) => callRows({ db }));
    expect([await cut, rows.map(({ state }) => state).join(' ')]).toEqual(['cut', `${'settled '.repeat(20)}recovered`]);
    expect(answers.map(({ headers }) => headers['x-request-id']).sort()).toEqual(
      rows
        .slice(0, 20)
        .map((row) => row.requestId)
        .sort(),
    );
    upstream.begin(json(completion('Hi')));
    expect((await chat(second.origin, first.key, 'large')).status).toBe(200);
    await upstream.close();
  });
});
