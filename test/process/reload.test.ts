// What a running server takes without a stop: at SIGHUP its environment file, and at once what the commands of `secrets` change.
import { chmodSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { loadSecrets } from '../../src/store/secrets/secrets.ts';
import { bearer, JSON_TYPE } from '../support/chat.ts';
import { newDataDir } from '../support/gateway.ts';
import { send } from '../support/request.ts';
import { completion, json, startUpstream, type TestUpstream } from '../support/upstream.ts';
import { type Ended, portcullis, type ServingProcess, serve } from './running.ts';

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
    writeFileSync(noted, '{"pid": 1}');
    const refused = await secrets('rotate-encryption-key');
    expect([refused.code, refused.stderr]).toEqual([
      1,
      `portcullis: The server on ${dataDir} does not say which secrets it has: stop it first.\n`,
    ]);
    await hangUp(running);
    expect((await secrets('rotate-encryption-key')).code).toBe(0);
    expect(await callWith(running.origin, running.key)).toBe(200);
  });
});
