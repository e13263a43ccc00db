// What a start says of providers: which can be called, and where each credential comes from (issue 12, 16).
import { rmSync } from 'node:fs';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createCustomProvider } from '../../src/admin/providers/custom-providers.ts';
import { createProviderKey } from '../../src/admin/providers/provider-keys.ts';
import { createCatalog } from '../../src/catalog/catalog.ts';
import { systemClock } from '../../src/domain/time.ts';
import { databasePath } from '../../src/store/db/data-dir.ts';
import { openDatabase } from '../../src/store/db/database.ts';
import { loadSecrets } from '../../src/store/secrets/secrets.ts';
import { listOrganizations } from '../../src/store/tenants/tenants.ts';
import { newDataDir } from '../support/gateway.ts';
import { saying, serve } from './running.ts';

const SECRET = 'sk-a-secret-that-nobody-reads';

let DATA_DIR: string;

beforeEach(() => {
  DATA_DIR = newDataDir();
});
afterEach(() => rmSync(DATA_DIR, { recursive: true, force: true }));

/** The list that a start prints, one entry in a line. */
async function listed(env: Record<string, string>): Promise<string[]> {
  const running = await serve({ DATA_DIR, ...env });
  const text = await saying(running, /providers {3}.+\n/);
  running.child.kill('SIGTERM');
  await running.ended;
  expect(text).not.toContain(SECRET);
  const [, list = ''] = /providers {3}((?:.+\n)(?: {14}.+\n)*)/.exec(text) ?? [];
  return list
    .trimEnd()
    .split('\n')
    .map((line) => line.trim().replace(/ {2,}/, ': '));
}

/** What customers bring along, next to a database that a first start has made. */
function addOwn(): void {
  const { encryptionKeys, signingKey } = loadSecrets(DATA_DIR, { create: false });
  const db = openDatabase(databasePath(DATA_DIR), { auditKey: signingKey.key });
  const [organization] = listOrganizations(db);
  const actor = { kind: 'cli', organizationId: organization?.id ?? '' } as const;
  const catalog = createCatalog({ sandbox: true, upstreams: [], clock: systemClock });
  const world = { now: Date.now(), catalog, allowPrivateUpstreams: [] };
  for (const provider of ['anthropic', 'anthropic', 'openai']) {
    const body = { provider, label: `${provider} ${Math.random()}`, token: SECRET };
    createProviderKey(db, actor, body, { ...world, encryptionKey: encryptionKeys[0] });
  }
  createCustomProvider(db, actor, { name: 'own', baseUrl: 'https://own.example/v1', keyless: true }, world);
  db.close();
}

it('names each provider that can be called and where its credential comes from, never the credential', async () => {
  expect(await listed({})).toEqual(['sandbox: built in']);
  addOwn();
  const env = {
    OPENAI_API_KEY: SECRET,
    GROQ_BASE_URL: 'https://groq.example/v1',
    UPSTREAM_GPU_BOX_BASE_URL: 'http://127.0.0.1:9/v1',
    UPSTREAM_GPU_BOX_MODELS: 'llama',
    UPSTREAM_GPU_BOX_API_KEY: SECRET,
    UPSTREAM_OLLAMA_BASE_URL: 'http://127.0.0.1:9/v1',
    UPSTREAM_OLLAMA_MODELS: 'qwen',
  };
  expect(await listed(env)).toEqual([
    'anthropic: 2 provider keys',
    'custom providers: 1 without a credential',
    'gpu-box: UPSTREAM_GPU_BOX_API_KEY',
    'ollama: no credential needed',
    'openai: OPENAI_API_KEY, 1 provider key',
    'sandbox: built in',
  ]);
});

it('says so when there is none', async () => {
  expect(await listed({ SANDBOX: 'off' })).toEqual(['none: nothing can be called until one has a credential']);
}, 30_000);

/** The sentences that a start warns with. */
async function warned(env: Record<string, string>): Promise<string[]> {
  const running = await serve({ DATA_DIR, CHECK_PROVIDERS: 'off', ...env });
  running.child.kill('SIGTERM');
  const { stdout } = await running.ended;
  const logged = stdout.split('\n').flatMap((line) => (line.startsWith('{') ? [Object(JSON.parse(line))] : []));
  return logged.filter(({ level }) => level === 40).map(({ msg }) => msg);
}

it('says where the sandbox still answers although another provider is connected, and nothing else', async () => {
  expect(await warned({})).toEqual([]);
  expect(await warned({ OPENAI_API_KEY: SECRET })).toEqual([]);
  const moderations =
    'The sandbox answers /v1/moderations, which knows a few words only: no connected provider moderates. Set OPENAI_API_KEY or MODERATION_MODEL.';
  expect(await warned({ ANTHROPIC_API_KEY: SECRET })).toEqual([
    moderations,
    'The sandbox draws for image requests without a model: no connected provider makes images. Set DEFAULT_IMAGE_MODEL, or connect one that does.',
  ]);
  expect(await warned({ GOOGLE_API_KEY: SECRET })).toEqual([moderations]);
  const named = { DEFAULT_IMAGE_MODEL: 'sandbox-image-plus', MODERATION_MODEL: 'sandbox-moderation' };
  expect(await warned({ ANTHROPIC_API_KEY: SECRET, ...named })).toEqual([]);
  expect(await warned({ ANTHROPIC_API_KEY: SECRET, SANDBOX: 'off' })).toEqual([]);
});

it('says once that a client address can be forged where callers come from elsewhere and no proxies are named', async () => {
  const warning =
    'HOST is 0.0.0.0 and TRUSTED_PROXIES is not set: a caller can forge the client address, by which IP rules decide and which stands in the logs, calls and decisions. Set TRUSTED_PROXIES to the ranges of your proxies, or to `none`.';
  expect(await warned({ HOST: '0.0.0.0' })).toEqual([warning]);
  expect(await warned({ HOST: '0.0.0.0', TRUSTED_PROXIES: 'none' })).toEqual([]);
  expect(await warned({ HOST: '127.0.0.2' })).toEqual([]);
  expect(await warned({ HOST: 'localhost' })).toEqual([]);
});
