// What a running server takes without a stop: at SIGHUP its environment file, and at once what the commands of `secrets` change.
import { spawn } from 'node:child_process';
import { chmodSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { cliCommand } from '../../scripts/runtime.js';
import { loadSecrets } from '../../src/store/secrets/secrets.ts';
import { bearer, JSON_TYPE } from '../support/chat.ts';
import { newDataDir } from '../support/gateway.ts';
import { send } from '../support/request.ts';
import { completion, json, startUpstream, type TestUpstream } from '../support/upstream.ts';
import { type Ended, portcullis, type ServingProcess, serve, start } from './running.ts';

let dataDir: string;
let upstream: TestUpstream;
let file: string;
let env: Readonly<Record<string, string>> & { readonly DATA_DIR: string };

beforeEach(async () => {
  dataDir = newDataDir();
  upstream = await startUpstream();
  upstream.begin(json(completion('Hi')));
  file = path.join(dataDir, 'portcullis.env');
  env = {
    DATA_DIR: dataDir,
    ENV_FILE: file,
    OPENAI_API_KEY: 'sk-of-the-environment',
    RATE_LIMIT_CHAT_PER_MINUTE: 'off',
  };
  write('# Providers', '', 'OPENAI_API_KEY="sk-one"', `OPENAI_BASE_URL=${upstream.origin}/v1`);
});

afterEach(async () => {
  await upstream.close();
  rmSync(dataDir, { recursive: true, force: true });
});

function write(...lines: string[]): void {
  writeFileSync(file, `${lines.join('\n')}\n`, { mode: 0o600 });
}

const callWith = async (origin: string, key: string | undefined): Promise<number> =>
  (
    await send(origin, {
      method: 'POST',
      path: '/v1/chat/completions',
      headers: [bearer(key ?? ''), JSON_TYPE, ['x-no-cache', 'true']],
      body: JSON.stringify({ model: 'gpt-5-mini', messages: [{ role: 'user', content: 'Hi' }] }),
    })
  ).status;

/** Credentials that the upstream has seen. */
const credentials = (): unknown[] => upstream.received.map(({ headers }) => headers.authorization);

/** The lines of the log whose message begins so, once there are so many. */
const logged = (running: ServingProcess, begin: string, count = 1): Promise<Record<string, unknown>[]> =>
  vi.waitFor(
    () => {
      const lines = running
        .said()
        .split('\n')
        .filter((line) => line.includes(`"msg":"${begin}`));
      expect(lines.length).toBeGreaterThanOrEqual(count);
      return lines.map((line): Record<string, unknown> => JSON.parse(line));
    },
    { timeout: 10_000 },
  );

async function hangUp(running: ServingProcess): Promise<void> {
  const told = () => running.said().match(/"msg":"SIGHUP/g)?.length ?? 0;
  const before = told();
  running.child.kill('SIGHUP');
  await vi.waitFor(() => expect(told()).toBe(before + 1), { timeout: 10_000 });
}

describe('SIGHUP', () => {
  it('takes a credential and an address of a provider that changed in ENV_FILE, which holds before the environment', async () => {
    const running = await serve(env);
    const elsewhere = await startUpstream();
    elsewhere.begin(json(completion('Hi')));
    expect(await callWith(running.origin, running.key)).toBe(200);

    write('OPENAI_API_KEY=sk-two', `OPENAI_BASE_URL=${elsewhere.origin}/v1`);
    await hangUp(running);
    expect(await callWith(running.origin, running.key)).toBe(200);
    const seen = elsewhere.received.map(({ headers }) => headers.authorization);
    await elsewhere.close();

    expect([credentials(), seen]).toEqual([['Bearer sk-one'], ['Bearer sk-two']]);
    const [line] = await logged(running, 'SIGHUP: the environment file');
    expect(line).toMatchObject({ taken: ['OPENAI_API_KEY', 'OPENAI_BASE_URL'] });
    expect(running.said()).not.toMatch(/sk-(?:one|two)/);
  });

  it('keeps what holds where the file is wrong, and says in one line what is', async () => {
    const running = await serve(env);
    const wrong: [string, () => void][] = [
      ['ENV_FILE: line 2 is not NAME=value.', () => write('OPENAI_API_KEY=sk-two', 'sk-secret')],
      ['ENV_FILE: line 2 sets OPENAI_API_KEY again.', () => write('OPENAI_API_KEY=sk-two', 'OPENAI_API_KEY=sk-3')],
      ['LOG_LEVEL must be one of', () => write('OPENAI_API_KEY=sk-two', 'LOG_LEVEL=loud')],
      ['OPENAI_BASE_URL must be', () => write('OPENAI_API_KEY=sk-two', 'OPENAI_BASE_URL=nowhere')],
      ['ENV_FILE: the file must not name another', () => write('ENV_FILE=/other')],
      ['PEPPER must be', () => write('PEPPER=short')],
      ['needs secrets that are not there', () => write(`PEPPER=${Buffer.alloc(32, 7).toString('base64url')}`)],
      ['set its mode to 0600 or 0640', () => chmodSync(file, 0o644)],
      ['ENV_FILE: cannot read', () => rmSync(file)],
    ];
    for (const [words, make] of wrong) {
      make();
      await hangUp(running);
      const error = (await logged(running, 'SIGHUP changed nothing')).at(-1)?.error;
      expect(error).toEqual(expect.stringContaining(words));
      expect(await callWith(running.origin, running.key)).toBe(200);
    }
    expect(new Set(credentials())).toEqual(new Set(['Bearer sk-one']));
    expect(running.said()).not.toContain('sk-secret');
  });

  it('names the settings that wait for a restart, new providers among them, and takes the others', async () => {
    const running = await serve(env);
    write(
      'OPENAI_API_KEY=sk-two',
      `OPENAI_BASE_URL=${upstream.origin}/v1`,
      'ANTHROPIC_API_KEY=sk-new',
      'MAX_IN_FLIGHT=7',
      'LOG_LEVEL=warn',
    );
    await hangUp(running);

    const [line] = await logged(running, 'changed settings wait for a restart');
    expect(line).toMatchObject({ waiting: ['ANTHROPIC_API_KEY', 'MAX_IN_FLIGHT'] });
    await hangUp(running).catch(() => undefined);
    expect(running.said().match(/SIGHUP: the environment file/g)).toHaveLength(1);
    expect(await callWith(running.origin, running.key)).toBe(200);
    expect(credentials()).toEqual(['Bearer sk-two']);
  });
});

describe('while the server runs and is called', () => {
  const secrets = (...args: string[]): Promise<Ended> => portcullis(['secrets', ...args], env);

  /** Calls until it is stopped, and tells the statuses; on a busy machine 503 is one of them, and no fault of a key. */
  function calling({ origin, key }: ServingProcess): () => Promise<Set<number>> {
    let stopped = false;
    const statuses = (async () => {
      const seen = new Set<number>();
      while (!stopped) {
        const status = await callWith(origin, key);
        if (status !== 503) seen.add(status);
        await sleep(20);
      }
      return seen;
    })();
    return () => {
      stopped = true;
      return statuses;
    };
  }

  it('the pepper is rotated and the old one dropped: no key is refused, and one that the command line makes works at once', async () => {
    const running = await serve(env);
    const [old] = loadSecrets(dataDir, { create: false }).peppers;
    const stop = calling(running);

    const early = await secrets('drop-pepper', old.id);
    const rotated = await secrets('rotate-pepper');
    const made = await portcullis(['keys', 'create', '--description', 'Later', '--json'], env);
    const { key } = JSON.parse(made.stdout);
    const ofNew = await callWith(running.origin, key.token);
    const used = await secrets('drop-pepper', old.id, '--force');

    expect([early.code, early.stderr]).toEqual([1, expect.stringContaining(old.id)]);
    expect([rotated.code, rotated.stderr, ofNew, used.code, used.stderr]).toEqual([0, '', 200, 0, '']);
    expect(await stop()).toEqual(new Set([200]));
    expect(loadSecrets(dataDir, { create: false }).peppers.map(({ id }) => id)).toEqual([
      expect.not.stringContaining(old.id),
    ]);
    expect(running.child.exitCode).toBeNull();
  });

  it('the encryption key is rotated: calls with provider keys go on, and new ones are sealed with the new key', async () => {
    const running = await serve(env);
    const add = (label: string, token: string): Promise<Ended> =>
      portcullis(['provider-keys', 'add', 'openai', '--label', label, '--token-env', 'TOKEN'], {
        ...env,
        TOKEN: token,
      });
    expect((await add('Own', 'sk-customer')).code).toBe(0);
    const [old] = loadSecrets(dataDir, { create: false }).encryptionKeys;
    const stop = calling(running);

    const rotated = await secrets('rotate-encryption-key');

    expect([rotated.code, rotated.stderr, rotated.stdout]).toEqual([
      0,
      '',
      expect.stringMatching(/^The encryption key is [0-9a-f]{8}\. Provider keys sealed again: 1\.\n$/),
    ]);
    expect(await callWith(running.origin, running.key)).toBe(200);
    expect(await stop()).toEqual(new Set([200]));
    expect(new Set(credentials().slice(1))).toEqual(new Set(['Bearer sk-customer']));
    expect(loadSecrets(dataDir, { create: false }).encryptionKeys.map(({ id }) => id)).toEqual([
      expect.not.stringContaining(old.id),
    ]);
  });

  it('a rotation says what to do where the server does not answer, and finishes when it is run again', async () => {
    const running = await serve(env);
    const noted = path.join(dataDir, 'serving.json');
    const before = loadSecrets(dataDir, { create: false });
    writeFileSync(noted, '{"pid": 1}');
    const refused = await secrets('rotate-encryption-key');
    expect([refused.code, refused.stderr]).toEqual([
      1,
      `portcullis: The server on ${dataDir} is starting or stopping, or serving.json there cannot be read: try again, or stop it first.\n`,
    ]);
    expect(loadSecrets(dataDir, { create: false })).toEqual(before);
    await hangUp(running);
    expect((await secrets('rotate-encryption-key')).code).toBe(0);
    expect(await callWith(running.origin, running.key)).toBe(200);
  });

  it('rotations and backups at the same moment wait for each other: each pepper that was made is kept, and each backup opens', async () => {
    const running = await serve(env);
    const add = ['provider-keys', 'add', 'openai', '--label', 'Own', '--token-env', 'TOKEN'];
    expect((await portcullis(add, { ...env, TOKEN: 'sk-customer' })).code).toBe(0);
    const folder = path.join(dataDir, 'backup');
    const stop = calling(running);

    const ended = await Promise.all([
      secrets('rotate-encryption-key'),
      secrets('rotate-pepper'),
      secrets('rotate-encryption-key'),
      secrets('rotate-pepper'),
      portcullis(['backup', folder], env),
    ]);

    expect(ended.map(({ code, stderr }) => [code, stderr])).toEqual(Array(5).fill([0, '']));
    expect(await stop()).toEqual(new Set([200]));
    const { peppers, encryptionKeys } = loadSecrets(dataDir, { create: false });
    expect([peppers.length, encryptionKeys.length]).toEqual([3, 1]);
    expect(await callWith(running.origin, running.key)).toBe(200);
  });

  it('a process that has the number of a server that was killed gets no signal, and nothing changes', async () => {
    const running = await serve(env);
    const noted = path.join(dataDir, 'serving.json');
    const serving = JSON.parse(readFileSync(noted, 'utf8'));
    const bystander = spawn(process.execPath, ['-e', 'setTimeout(() => {}, 60_000)', 'cli.ts'], { stdio: 'ignore' });
    onTestFinished(() => void bystander.kill('SIGKILL'));
    writeFileSync(noted, JSON.stringify({ ...serving, pid: bystander.pid }));
    const before = loadSecrets(dataDir, { create: false });

    for (const command of ['rotate-pepper', 'rotate-encryption-key']) {
      const refused = await secrets(command);
      expect([refused.code, refused.stderr]).toEqual([
        1,
        `portcullis: Process ${bystander.pid}, which serving.json names, is no longer a server: try again when a server runs.\n`,
      ]);
    }
    expect([bystander.exitCode, bystander.signalCode]).toEqual([null, null]);
    expect(loadSecrets(dataDir, { create: false })).toEqual(before);
    running.child.kill('SIGTERM');
    await running.ended;
    expect(existsSync(noted)).toBe(false);
  });

  it('a rotation that is killed at any moment leaves every key usable, and the next one finishes', async () => {
    const running = await serve(env);
    const add = ['provider-keys', 'add', 'openai', '--label', 'Own', '--token-env', 'TOKEN'];
    expect((await portcullis(add, { ...env, TOKEN: 'sk-customer' })).code).toBe(0);
    const [{ id: first }] = loadSecrets(dataDir, { create: false }).encryptionKeys;
    const stop = calling(running);
    for (const change of ['rotate-pepper', 'rotate-encryption-key', 'rotate-encryption-key']) {
      const killed = start(process.execPath, [...cliCommand.args, 'secrets', change], { ...cliCommand.env, ...env });
      const before = readFileSync(path.join(dataDir, 'secrets.json'), 'utf8');
      // At the first change of the file, or once the process has ended.
      while (killed.child.exitCode === null && readFileSync(path.join(dataDir, 'secrets.json'), 'utf8') === before)
        await sleep(1);
      killed.child.kill('SIGKILL');
      await killed.ended;
      expect(await callWith(running.origin, running.key)).toBe(200);
    }
    expect(await secrets('rotate-pepper')).toMatchObject({ code: 0, stderr: '' });
    expect(await secrets('rotate-encryption-key')).toMatchObject({ code: 0, stderr: '' });
    expect(await stop()).toEqual(new Set([200]));
    const { encryptionKeys } = loadSecrets(dataDir, { create: false });
    expect([encryptionKeys.length, encryptionKeys[0].id === first]).toEqual([1, false]);
    expect(await callWith(running.origin, running.key)).toBe(200);
    expect(credentials().at(-1)).toBe('Bearer sk-customer');
  });

  it('a server that is starting is neither ended nor passed by a rotation', async () => {
    const first = await serve(env);
    first.child.kill('SIGTERM');
    await first.ended;
    const starting = serve(env);
    const rotated: Ended[] = [];
    for (let round = 0; round < 3; round += 1) rotated.push(await secrets('rotate-pepper'));
    const running = await starting.catch(() => serve(env));

    for (const { code, stderr } of rotated) {
      if (code !== 0) expect(stderr).toContain('is starting or stopping');
    }
    const made = await portcullis(['keys', 'create', '--description', 'Later', '--json'], env);
    expect(await callWith(running.origin, JSON.parse(made.stdout).key.token)).toBe(200);
    expect(await callWith(running.origin, first.key)).toBe(200);
  });
});
