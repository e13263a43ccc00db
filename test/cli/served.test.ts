// What commands in another environment than the server's judge access by.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { runIn } from './command-line.ts';

const ENV = {
  UPSTREAM_LAB_BASE_URL: 'http://127.0.0.1:9/secret-path/v1',
  UPSTREAM_LAB_API_KEY: 'sk-lab-secret',
  UPSTREAM_LAB_MODELS: 'big,plain',
  UPSTREAM_LAB_PRICES: 'big=75/75',
  UPSTREAM_LAB_LIMITS: 'plain=8000/-',
  OPENAI_API_KEY: 'sk-openai-secret',
  XAI_BASE_URL: 'https://xai.example/v1',
  TRUSTED_PROXIES: '10.0.0.0/8',
};

let gateway: TestGateway;
let record: string;
let content: string;
beforeAll(async () => {
  gateway = await startGateway(ENV);
  record = path.join(gateway.dataDir, 'policy/served.json');
  content = readFileSync(record, 'utf8');
  state(20);
  expect(await policy('apply')).toMatchObject({ code: 0 });
});
afterAll(() => gateway.close());
beforeEach(() => {
  writeFileSync(record, content);
  state(80);
});

const policy = (what: string, ...options: string[]) => runIn(gateway.dataDir, {}, 'policy', what, 'rules', ...options);

/** Only the upstream may be called, at the price or below. */
function state(maxOutputPrice: number): void {
  mkdirSync(path.join(gateway.dataDir, 'rules'), { recursive: true });
  const cheap = { ruleType: 'allow_pricing', ruleValue: { maxOutputPrice } };
  const lab = { ruleType: 'allow_providers', ruleValue: { providers: ['lab', 'sandbox'] } };
  writeFileSync(
    path.join(gateway.dataDir, 'rules/organization.yaml'),
    JSON.stringify({ organization: { rules: { cheap, lab } } }),
  );
}

const JUDGED = /^Judged by what the server of \S+Z serves: sandbox, lab, openai\.$/m;

it('a start records what is served, without a secret', () => {
  expect(JSON.parse(content)).toEqual({
    startedAt: expect.stringMatching(/^20.*Z$/),
    catalogDate: expect.stringMatching(/^20\d\d-\d\d-\d\d$/),
    bundleDigest: expect.stringMatching(/^[0-9a-f]{64}$/),
    trustedProxies: ['10.0.0.0/8'],
    sandbox: true,
    providers: [
      { id: 'openai', host: null, credential: true },
      { id: 'xai', host: 'xai.example', credential: false },
    ],
    upstreams: [
      {
        name: 'lab',
        host: '127.0.0.1:9',
        credential: true,
        models: [
          { id: 'big', prices: { prompt: '75000000', completion: '75000000' } },
          { id: 'plain', prices: {}, contextLength: 8000 },
        ],
      },
    ],
  });
  expect(content).not.toMatch(/secret/);
});

it('an apply without the variables of the server refuses its model, and changes nothing', async () => {
  const refused = await policy('apply', '--fail-on', 'new-access');
  expect(refused).toMatchObject({ code: 1, stderr: 'portcullis: 2 newly permitted.\n' });
  expect(refused.stdout).toMatch(/^ {4}\+ lab\/big$/m);
  expect(refused.stdout).toMatch(JUDGED);
  const drafted = path.join(gateway.dataDir, 'draft.yaml');
  const draft = { organization: true, ruleType: 'allow_pricing', ruleValue: { maxOutputPrice: 90 } };
  writeFileSync(drafted, JSON.stringify({ rules: [draft] }));
  const diff = ['policy', 'diff', '--draft', drafted, '--fail-on', 'new-access'];
  expect(await runIn(gateway.dataDir, {}, ...diff)).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(JUDGED),
    stderr: 'portcullis: 2 newly permitted.\n',
  });
  const added = ['rules', 'add', '--organization', 'allow_pricing', '--max-output-price', '90', '--fail-on-new-access'];
  expect(await runIn(gateway.dataDir, {}, ...added)).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/it would newly permit lab\/big for /),
  });
  const all = await runIn(gateway.dataDir, {}, 'rules', 'list', '--json');
  expect(JSON.parse(all.stdout).rules).toHaveLength(2);
});

it('with --against env its own environment is judged by, and a line says so', async () => {
  expect(await policy('plan', '--fail-on', 'new-access', '--against', 'env')).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^Judged by this environment \(--against env\): sandbox\.$/m),
  });
});

it('a plan that must not widen fails where nobody knows what is served', async () => {
  rmSync(record);
  const unknown = await policy('plan', '--fail-on', 'new-access');
  expect(unknown).toMatchObject({ code: 1, stdout: '' });
  expect(unknown.stderr).toMatch(/^portcullis: What the server serves is not known, so new access cannot be ruled out/);
  expect(await policy('plan')).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(
      /^Judged by this environment \(no server has started on this DATA_DIR\): sandbox\.$/m,
    ),
  });
  const { TRUSTED_PROXIES: _, ...providers } = ENV;
  expect(await runIn(gateway.dataDir, providers, 'policy', 'plan', 'rules', '--fail-on', 'new-access')).toMatchObject({
    code: 1,
    stderr: 'portcullis: 2 newly permitted.\n',
  });
  writeFileSync(record, '{}');
  expect(await policy('plan')).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/served\.json is not what the server writes there: start the server once/),
  });
});
