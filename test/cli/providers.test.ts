import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createContainer } from '../../src/container.ts';
import { openSecret } from '../../src/domain/provider.ts';
import { databasePath } from '../../src/store/db/data-dir.ts';
import { bearer, hello, JSON_TYPE } from '../support/chat.ts';
import { testConfig } from '../support/gateway.ts';
import { send } from '../support/request.ts';
import { startUpstream } from '../support/upstream.ts';
import { type CommandLine, createCommandLine, jsonOf } from './command-line.ts';

const SECRET = 'sk-the-very-secret-0123456789-tail';

let portcullis: CommandLine;

beforeAll(async () => {
  portcullis = await createCommandLine();
});
afterAll(() => portcullis.close());

/** What a running server would call with from now on. */
const own = () => portcullis.store.organizationProviders(portcullis.first.organizationId);

const secrets = async (): Promise<string[]> =>
  (await own()).keys.map(({ secret, id }) => openSecret(secret, id, ...portcullis.secrets.encryptionKeys));

describe('the command line', () => {
  it('adds a custom provider with a model and a key, which a server that holds the database has at once', async () => {
    const BASE = 'https://models.example/v1';
    const { customProvider } = Object(
      jsonOf(await portcullis.run('custom-providers', 'add', 'acme', '--base-url', BASE, '--json')),
    );
    expect(customProvider).toMatchObject({ name: 'acme', wire: 'openai', baseUrl: BASE, keyless: false });

    const prices = ['--price', 'prompt=0.59', '--price', 'completion=0.79'];
    const limits = ['--context-length', '131072', '--max-output', 'none', '--supports', 'streaming,tools'];
    const { customModel } = Object(
      jsonOf(await portcullis.run('custom-models', 'add', 'acme', 'org/m', ...prices, ...limits, '--json')),
    );
    expect(customModel).toMatchObject({
      name: 'acme/org/m',
      customProviderId: customProvider.id,
      contextLength: 131_072,
      maxOutput: null,
      streaming: true,
      tools: true,
      vision: false,
    });

    const add = ['provider-keys', 'add', 'custom:acme', '--label', 'Acme', '--project', 'Default'];
    const { providerKey } = Object(
      jsonOf(await portcullis.runWith({ ACME_KEY: SECRET }, ...add, '--token-env', 'ACME_KEY', '--json')),
    );
    expect(providerKey).toMatchObject({
      provider: 'custom:acme',
      projectId: portcullis.first.projectId,
      maskedToken: 'sk-t…tail',
      position: 1,
    });

    const { providers, mappings } = await own();
    expect([providers.map(({ id }) => id), mappings.map(({ id }) => id)]).toEqual([
      [customProvider.id],
      ['acme/org/m'],
    ]);
    expect(await secrets()).toEqual([SECRET]);
  });

  it('lists a provider key with the name of its project', async () => {
    const { stdout } = await portcullis.run('provider-keys', 'list');
    expect(stdout.split('\n').map((line) => line.replace(/pkey_\w+/, 'pkey').split(/ {2,}/))).toEqual([
      ['LABEL', 'ID', 'PROVIDER', 'SECRET', 'PROJECT', 'STATUS'],
      ['Acme', 'pkey', 'custom:acme', 'sk-t…tail', 'Default', 'active'],
      [''],
    ]);
  });

  it('reads a secret from a file by standard input, and seals it in place of the one before', async () => {
    const file = path.join(portcullis.folder, 'key.txt');
    writeFileSync(file, 'sk-from-a-file-0123456789\r\n');
    const input = readFileSync(file, 'utf8');
    const { code, stdout } = await portcullis.runWithInput(
      input,
      'provider-keys',
      'update',
      'Acme',
      '--token-stdin',
      '--base-url',
      'https://proxy.example',
      '--project',
      'none',
    );
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^LABEL {2}ID +PROVIDER +SECRET +PROJECT {2}STATUS {2}POSITION {2}BASE URL +PROJECT ID\nAcme {3}pkey_[0-9a-f]{32} {2}custom:acme {2}sk-f…6789 {2}all {6}active {2}1 {9}https:\/\/proxy\.example {2}all\nNo new access\.\n$/,
    );
    expect(await secrets()).toEqual(['sk-from-a-file-0123456789']);
  });

  it('changes and lists them as aligned tables', async () => {
    const tables: string[] = [];
    const run = async (...args: string[]) => {
      const { code, stdout, stderr } = await portcullis.run(...args);
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      tables.push(stdout.replaceAll(/(prov|model)_[0-9a-f]{32}/g, '$1'));
    };
    await run('custom-providers', 'update', 'custom:acme', '--wire', 'anthropic', '--keyless');
    await run('custom-providers', 'list');
    await run(
      'custom-models',
      'update',
      'acme/org/m',
      '--price',
      'prompt=none',
      '--supports',
      'none',
      '--status',
      'inactive',
    );
    await run('custom-models', 'list', '--provider', 'acme');
    expect(tables).toEqual([
      `NAME  ID${' '.repeat(37)}API        BASE URL                   CREDENTIAL   OWN FIELDS\nacme  prov  anthropic  https://models.example/v1  none needed  -\nNo new access.\n`,
      `NAME  ID${' '.repeat(37)}API        BASE URL                   CREDENTIAL\nacme  prov  anthropic  https://models.example/v1  none needed\n`,
      `NAME        ID${' '.repeat(38)}INPUT $/M  OUTPUT $/M  CONTEXT  STATUS    SUPPORTS\nacme/org/m  model  -          0.79        131072   inactive  -\nNo new access.\n`,
      `NAME        ID${' '.repeat(38)}INPUT $/M  OUTPUT $/M  CONTEXT  STATUS\nacme/org/m  model  -          0.79        131072   inactive\n`,
    ]);
    const { customProvider } = Object(
      jsonOf(await portcullis.run('custom-providers', 'update', 'acme', '--no-keyless', '--json')),
    );
    expect(customProvider.keyless).toBe(false);
  });

  it('keeps the order in which keys are tried', async () => {
    const add = async (label: string, ...more: string[]) =>
      portcullis.runWith(
        { K: SECRET },
        'provider-keys',
        'add',
        'openai',
        '--label',
        label,
        '--token-env',
        'K',
        ...more,
      );
    await add('A');
    await add('B');
    await add('C', '--position', '1');
    await portcullis.run('provider-keys', 'update', 'A', '--position', '1');
    const { providerKeys } = Object(jsonOf(await portcullis.run('provider-keys', 'list', '--json')));
    const order = providerKeys.map(({ label, position }: { label: string; position: number }) => [label, position]);
    expect(order).toEqual([
      ['Acme', 1],
      ['A', 1],
      ['C', 2],
      ['B', 3],
    ]);
  });

  it('opens private addresses as the server does', async () => {
    const add = ['custom-providers', 'add', 'local', '--base-url', 'http://127.0.0.1:11434/v1', '--keyless'];
    const { code, stderr } = await portcullis.run(...add);
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr:
        'portcullis: --base-url: The address of the base URL is private: it can be used when ALLOW_PRIVATE_UPSTREAMS names 127.0.0.1:11434.\n',
    });
    expect((await portcullis.runWith({ ALLOW_PRIVATE_UPSTREAMS: '127.0.0.1:11434' }, ...add)).code).toBe(0);
  });

  it.each([
    [['provider-keys', 'add', 'openai', '--label', 'x'], 2, 'Say where the secret is: --token-stdin or --token-env.'],
    [['provider-keys', 'add', 'openai', '--token-env', 'DATA_DIR'], 2, 'Name the provider key: --label.'],
    [
      ['provider-keys', 'add', 'openai', '--label', 'x', '--token-env', 'NOT_SET'],
      1,
      'There is no environment variable NOT_SET.',
    ],
    [
      ['provider-keys', 'add', 'openai', '--label', 'x', '--token-env', 'A', '--token-stdin'],
      2,
      'Give --token-stdin or --token-env, not both.',
    ],
    [['provider-keys', 'add', 'openai', '--label', 'x', '--token', SECRET], 2, "unknown option '--token'"],
    [['provider-keys', 'update', 'None', '--label', 'x'], 1, 'There is no provider key with the id or label "None".'],
    [['provider-keys', 'update', 'A', '--position', '0'], 2, 'It must be a whole number from 1.'],
    [
      ['provider-keys', 'update', 'A', '--base-url', 'https://elsewhere.example'],
      1,
      'A base URL on another server needs the token again',
    ],
    [
      ['custom-providers', 'add', 'openai', '--base-url', 'https://a.example'],
      1,
      'The provider name "openai" is taken.',
    ],
    [['custom-providers', 'remove', 'none'], 1, 'There is no custom provider with the id or name "none".'],
    [
      ['custom-models', 'add', 'acme', 'm', '--supports', 'flying'],
      2,
      'It must be "none" or a comma list of streaming',
    ],
    [['custom-models', 'add', 'acme', 'm', '--price', 'free'], 2, 'It must be a name and USD'],
    [['custom-models', 'add', 'acme', 'm', '--price', 'prompt=1e-6'], 2, 'prompt must be USD per million tokens'],
    [['custom-models', 'add', 'acme', 'm', '--price', 'request=1e-6'], 2, '--price request ("1e-6") must be "none" or'],
    [
      ['custom-models', 'add', 'acme', 'm', '--context-length', 'big'],
      2,
      'It must be a whole number of tokens, or none.',
    ],
    [['custom-models', 'update', 'acme/org/m'], 2, 'Say what to change: --help lists the options.'],
  ])('refuses %j', async (args, code, message) => {
    const outcome = await portcullis.run(...args);
    expect({ code: outcome.code, stdout: outcome.stdout }).toEqual({ code, stdout: '' });
    expect(outcome.stderr).toContain(message);
    expect(outcome.stderr).not.toContain(SECRET);
  });

  it('takes the prices of tokens per million, and of the rest each', async () => {
    const prices = ['prompt=5', 'completion=0.001', 'request=1'].flatMap((price) => ['--price', price]);
    const { customModel } = Object(
      jsonOf(await portcullis.run('custom-models', 'add', 'acme', 'dear', ...prices, '--json')),
    );
    expect(customModel.pricing).toMatchObject({ prompt: '0.000005', completion: '0.000000001', request: '1' });
    await portcullis.run('custom-models', 'remove', 'acme/dear');
  });

  it('says how long context and answers of a model are, to which a key with a limit is held', async () => {
    const upstream = await startUpstream();
    const env = { ALLOW_PRIVATE_UPSTREAMS: new URL(upstream.origin).host };
    const add = ['custom-providers', 'add', 'near', '--base-url', `${upstream.origin}/v1`, '--keyless'];
    expect((await portcullis.runWith(env, ...add)).code).toBe(0);
    const prices = ['--price', 'prompt=1', '--price', 'completion=2'];
    await portcullis.run('custom-models', 'add', 'near', 'output', ...prices, '--max-output', '512');
    await portcullis.run('custom-models', 'add', 'near', 'context', ...prices, '--context-length', '8192');
    await portcullis.run('custom-models', 'add', 'near', 'none', ...prices);
    const { key } = Object(jsonOf(await portcullis.run('keys', 'create', '--limit', '5', '--json')));

    const container = await createContainer(testConfig(portcullis.folder, env));
    for (const model of ['near/output', 'near/context', 'near/none']) {
      const body = JSON.stringify(hello({ model }));
      const headers = [bearer(key.token), JSON_TYPE];
      const path = '/v1/chat/completions';
      expect((await send(container.gateway.origin, { method: 'POST', path, headers, body })).status).toBe(200);
    }
    await container.close();
    await upstream.close();

    // Of the context goes half a token for each byte of the request.
    const room = 8192 - Math.ceil(JSON.stringify(hello({ model: 'near/context' })).length / 2);
    expect(
      upstream.received.map(({ json }) => Object(json)).map(({ model, max_tokens }) => [model, max_tokens]),
    ).toEqual([
      ['output', 512],
      ['context', room],
      ['none', 16_384],
    ]);
    await portcullis.run('custom-providers', 'remove', 'near');
  });

  it('removes a key, a model, and a provider with the rest', async () => {
    const ids = async () => {
      const { keys, mappings, providers } = await own();
      return [keys.length, mappings.length, providers.length];
    };
    await portcullis.run('custom-models', 'update', 'acme/org/m', '--status', 'active');
    await portcullis.run('custom-models', 'add', 'acme', 'other');
    expect(await ids()).toEqual([4, 2, 2]);
    expect((await portcullis.run('provider-keys', 'remove', 'B')).stdout).toMatch(
      /^Removed pkey_[0-9a-f]{32}\.\nNo new access\.\n$/,
    );
    expect((await portcullis.run('custom-models', 'delete', 'acme/other')).stdout).toMatch(/^Removed model_/);
    expect(await ids()).toEqual([3, 1, 2]);
    expect(jsonOf(await portcullis.run('custom-providers', 'remove', 'acme', '--json'))).toMatchObject({
      deleted: true,
    });
    expect(await ids()).toEqual([2, 0, 1]);
  });

  it('leaves no secret in the files of the database', () => {
    const file = databasePath(portcullis.folder);
    const bytes = [file, `${file}-wal`].map((name) => readFileSync(name));
    for (const secret of [SECRET, 'sk-from-a-file-0123456789']) {
      expect(bytes.map((each) => each.includes(secret))).toEqual([false, false]);
    }
    // The same search finds what is stored as it is.
    expect(bytes.some((each) => each.includes('https://models.example/v1'))).toBe(true);
  });
});

describe('portcullis custom-models add', () => {
  it('warns of a price that was probably meant per token', async () => {
    await portcullis.run('custom-providers', 'add', 'odd', '--base-url', 'https://odd.example/v1', '--keyless');
    const add = (model: string, price: string) =>
      portcullis.run('custom-models', 'add', 'odd', model, '--price', `prompt=${price}`);
    expect([(await add('low', '0.000003')).stderr, (await add('usual', '0.001')).stderr]).toEqual([
      'portcullis: warning: A price of low is below 0.001 USD per million tokens: was it meant per token?\n',
      '',
    ]);
    expect((await add('free', '0')).stderr).toBe('');
  });
});
