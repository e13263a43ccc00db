// GET /metrics: what is counted, under which names, and who may look.
import { rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createCustomModel } from '../src/admin/providers/custom-models.ts';
import { createCustomProvider } from '../src/admin/providers/custom-providers.ts';
import { createProviderKey } from '../src/admin/providers/provider-keys.ts';
import { changeBudget, listWatchedBudgets } from '../src/admin/tenants/budgets.ts';
import { createCatalog } from '../src/catalog/catalog.ts';
import { createContainer } from '../src/container.ts';
import { systemClock } from '../src/domain/time.ts';
import { loadSecrets } from '../src/store/secrets/secrets.ts';
import { setBudget } from '../src/store/tenants/budget-records.ts';
import { createMetrics } from '../src/telemetry/metrics.ts';
import { readBuild } from '../src/version.ts';
import { bearer, chat, errorOf, faulty, hello } from './support/chat.ts';
import { type Family, metricsOf, valuesOf } from './support/exposition.ts';
import { addKey, addRule, startGateway, type TestGateway } from './support/gateway.ts';
import { draw, fox, moderate } from './support/images.ts';
import { tables } from './support/pages.ts';
import { archiveOf, bundleFiles } from './support/policy-bundles.ts';
import { send } from './support/request.ts';
import { callRows } from './support/rows.ts';
import { completion, json, startUpstream, type TestUpstream, upstreamEnv } from './support/upstream.ts';

let upstream: TestUpstream;
let gateway: TestGateway;

beforeEach(async () => {
  upstream = await startUpstream();
});

afterEach(async () => {
  await gateway.close();
  await upstream.close();
});

const start = async (env: Readonly<Record<string, string>> = {}, caching = false): Promise<void> => {
  gateway = await startGateway({ ...upstreamEnv('acme', upstream.origin, 'large', 'large=2/8'), ...env }, { caching });
};

const ours = (families: readonly Family[]): Family[] => families.filter(({ name }) => name.startsWith('portcullis_'));

const USAGE = {
  prompt_tokens: 100,
  completion_tokens: 50,
  total_tokens: 150,
  prompt_tokens_details: { cached_tokens: 30 },
  completion_tokens_details: { reasoning_tokens: 20 },
};

/** Sets the limits of the organization, as the master API does. */
function setOrganizationBudget(body: object): void {
  const { organizationId } = gateway.firstRun;
  changeBudget(gateway.db, { kind: 'cli', organizationId }, { kind: 'organization' }, body, Date.now());
}

/** A little of everything. */
async function everything(): Promise<void> {
  upstream.begin(json(completion('Hi', { usage: USAGE })));
  await chat(gateway, hello({ model: 'large' }));
  await chat(gateway, hello({ model: 'large' }));
  await chat(gateway, hello({ model: 'sandbox-free', stream: true }));
  await chat(gateway, faulty('500'));
  await chat(gateway, hello({ model: 'no-such-model' }));
  addRule(gateway, 'key', { ruleType: 'deny_models', ruleValue: { models: ['sandbox-slow'] } });
  await chat(gateway, hello({ model: 'sandbox-slow' }));
  await draw(gateway, fox());
  await moderate(gateway, { input: 'x' });
  await moderate(gateway, { input: 'x' });
  await send(gateway.origin, { path: '/nothing/there' });
}

/** Report rules are counted a few seconds later. */
const counted = (): Promise<void> =>
  vi.waitFor(async () => expect(valuesOf(await metricsOf(gateway), 'report_rule_decisions_total')).not.toEqual({}), {
    timeout: 20_000,
    interval: 200,
  });

describe('the metrics', () => {
  it('count what happened, each thing once, as the ledger has it', async () => {
    await start({ RATE_LIMIT_MODERATIONS_PER_MINUTE: '1' }, true);
    await everything();

    const metrics = await metricsOf(gateway);

    const counted = (name: string): Record<string, number> => valuesOf(metrics, name);
    expect(counted('requests_total')).toEqual({
      '/v1/chat/completions 2xx none': 3,
      '/v1/chat/completions 5xx upstream_error': 1,
      '/v1/chat/completions 4xx model_not_found': 1,
      '/v1/chat/completions 4xx permission_denied': 1,
      '/v1/images/generations 2xx none': 1,
      '/v1/moderations 2xx none': 1,
      '/v1/moderations 4xx rate_limit_exceeded': 1,
      'other 4xx not_found': 1,
    });
    expect(counted('rate_limited_requests_total')).toEqual({ moderations: 1 });
    expect(counted('calls_total')).toEqual({
      'chat acme large none': 2, // one of them from the cache
      'chat sandbox sandbox-free none': 1,
      'chat none none upstream_error': 1,
      'chat none none permission_denied': 1,
      'image sandbox sandbox-image-plus none': 1,
      'moderation sandbox sandbox-moderation none': 1,
    });
    expect(Object.values(counted('calls_total')).reduce((a, b) => a + b)).toBe(callRows(gateway).length);
    expect(counted('attempts_total')).toEqual({
      'acme large none': 1,
      'sandbox sandbox-free none': 1,
      'sandbox sandbox-faulty upstream_error': 1,
      'sandbox sandbox-image-plus none': 1,
      'sandbox sandbox-moderation none': 1,
    });
    expect(counted('call_duration_seconds')).toEqual({
      'chat acme large': 1,
      'chat sandbox sandbox-free': 1,
      'chat none none': 1,
      'image sandbox sandbox-image-plus': 1,
      'moderation sandbox sandbox-moderation': 1,
    });
    expect(counted('time_to_first_token_seconds')).toEqual({ 'sandbox sandbox-free': 1 });
    expect(counted('tokens_total')).toMatchObject({
      'acme large input': 70,
      'acme large cached_input': 30,
      'acme large output': 30,
      'acme large reasoning': 20,
    });
    expect(counted('cost_usd_total')).toEqual({ 'acme large': 0.0006 });
    expect(counted('decisions_total')).toEqual({ 'permit none': 6, 'deny deny_models': 1 });
    expect(counted('policy_evaluation_seconds')).toEqual({ '': 7 });
    expect(counted('cache_lookups_total')).toEqual({ miss: 3, hit: 1 });
    expect(counted('cache_entries')).toEqual({ '': 2 });
    const { version, commit, schema } = readBuild();
    expect(counted('build_info')).toEqual({
      [`${version} ${commit} ${schema} ${(await policyRevision()).slice(0, 12)} ${catalog.date}`]: 1,
    });
    for (const name of ['requests_in_flight', 'buffered_body_bytes']) {
      expect([name, counted(name)]).toEqual([name, { gateway: 0, management: 0 }]);
    }
    for (const name of ['writer_queue_operations', 'resting_targets']) {
      expect([name, counted(name)]).toEqual([name, { '': 0 }]);
    }
  });

  it('count what rests after failures', async () => {
    await start();
    for (let i = 0; i < 3; i += 1) await chat(gateway, faulty('500'));

    expect(valuesOf(await metricsOf(gateway), 'resting_targets')).toEqual({ '': 1 });
  });

  it('count calls that cost more than was reserved for them', async () => {
    await start();
    const { token } = addKey(gateway, { usageLimit: '1' });
    upstream.begin(json(completion('Hi', { usage: { ...USAGE, prompt_tokens: 9000, total_tokens: 9050 } })));

    await chat(gateway, hello({ model: 'large', max_tokens: 10 }), { token });

    expect(valuesOf(await metricsOf(gateway), 'over_reservations_total')).toEqual({ '': 1 });
  });

  it('count the calls that a crash had left open', async () => {
    await start();
    upstream.begin((response, received) => {
      gateway.db.connection.exec('BEGIN IMMEDIATE');
      return json(completion('Hi'))(response, received);
    });
    await chat(gateway, hello({ model: 'large' }));
    await gateway.container.close();
    gateway.db.connection.exec('ROLLBACK');

    const { management, ...container } = await createContainer(gateway.config);
    const metrics = await metricsOf({ management: management.origin });
    await container.close();

    expect(valuesOf(metrics, 'recovered_calls_total')).toEqual({ '': 1 });
  });

  it('know of a name only what the catalogue says of it: nothing of a customer or a caller is a label', async () => {
    await start({ ALLOW_PRIVATE_UPSTREAMS: new URL(upstream.origin).host });
    addCustomModel('their-own', 'their-model');
    addRule(gateway, 'key', { ruleType: 'deny_models', ruleValue: { models: ['their-own/their-*', 'sandbox-slow'] } });
    const denied = await chat(gateway, hello({ model: 'their-own/their-model' }));
    addCustomModel('free-own', 'free-model');
    const served = await chat(gateway, hello({ model: 'free-own/free-model' }));
    await chat(gateway, hello({ model: 'whatever-they-say' }));
    await send(gateway.origin, { path: '/v1/models/whatever-they-say' });
    await send(gateway.origin, { path: '/whatever-they-say', method: 'DELETE' });

    const metrics = await metricsOf(gateway);

    const { text } = await send(gateway.management, { path: '/metrics' });
    expect([denied.status, served.status]).toEqual([403, 200]);
    expect(text).not.toMatch(/-own|their-|free-model|whatever/);
    expect(valuesOf(metrics, 'calls_total')).toEqual({
      'chat custom custom none': 1,
      'chat none none permission_denied': 1,
    });
    expect(valuesOf(metrics, 'attempts_total')).toEqual({ 'custom custom none': 1 });
  });

  it('are well formed, and those that the documentation names', async () => {
    const bundle = path.join(tmpdir(), `bundle-${process.pid}.tar.gz`);
    writeFileSync(bundle, archiveOf(bundleFiles('v1')));
    await start(
      {
        RATE_LIMIT_MODERATIONS_PER_MINUTE: '1',
        POLICY_BUNDLE: bundle,
        POLICY_BUNDLE_POLL_SECONDS: '1',
        BUDGET_METRICS: 'on',
        CHECK_PROVIDERS: 'on',
      },
      true,
    );
    rmSync(bundle);
    setOrganizationBudget({ usageLimit: '5' });
    await everything();
    addRule(gateway, 'key', { ruleType: 'deny_models', ruleValue: { models: ['sandbox-free'] }, mode: 'report' });
    await chat(gateway, hello({ model: 'sandbox-free' }));
    await counted();
    const refusals = async () => valuesOf(await metricsOf(gateway), 'policy_refusals_total');
    await expect
      .poll(refusals, { timeout: 10_000 })
      .toMatchObject({ unreachable: expect.not.toBeOneOf([0]), policy: 0 });

    const families = ours(await metricsOf(gateway));

    const rows = families.map(({ name, type, help, samples }) => {
      const labels = new Set(samples.flatMap((sample) => Object.keys(sample.labels)).filter((label) => label !== 'le'));
      return [`\`${name}\``, type, [...labels].map((label) => `\`${label}\``).join(', '), help];
    });
    expect(tables('Metric')).toEqual([rows]);
    for (const { name, type, samples } of families) {
      expect(name).toMatch(type === 'counter' ? /_total$/ : type === 'histogram' ? /_seconds$/ : /(?<!_total)$/);
      expect(samples.length).toBeGreaterThan(0);
    }
  });

  it('count what report rules would have changed, by their ids, of which a bounded number has labels', async () => {
    await start();
    const report = { ruleType: 'deny_models', mode: 'report' } as const;
    const { id } = addRule(gateway, 'key', { ...report, ruleValue: { models: ['sandbox-free'] } });
    addRule(gateway, 'key', { ...report, ruleValue: { models: ['sandbox-slow'] } });
    await chat(gateway, hello({ model: 'sandbox-free' }));
    await chat(gateway, hello({ model: 'sandbox-paid' }));
    await chat(gateway, hello({ model: 'sandbox-free' }));
    await counted();

    const metrics = await metricsOf(gateway);
    expect(valuesOf(metrics, 'report_rule_decisions_total')).toEqual({
      [`${id} would_deny`]: 2,
    });
    const { [id]: seen, ...others } = valuesOf(metrics, 'report_rule_last_seen_timestamp_seconds');
    expect(others).toEqual({});
    expect(Math.abs((seen ?? 0) - Date.now() / 1000)).toBeLessThan(60);

    const { reported, exposition } = createMetrics();
    for (let rule = 0; rule < 600; rule += 1) {
      reported({ ruleId: `rule_${rule}`, wouldDeny: 1, wouldAllow: 0, lastSeenAt: 0 });
    }
    const rules = new Set((await exposition()).match(/rule="\w+"/g));
    expect([rules.size, rules.has('rule="other"')]).toEqual([501, true]);
  });

  it('have the limits of budgets and what was spent of them, by their ids, for an operator who asks for them', async () => {
    await start({ BUDGET_METRICS: 'on' });
    setOrganizationBudget({
      usageLimit: '5',
      periodUsageLimit: '0.5',
      periodUsageDurationValue: 1,
      periodUsageDurationUnit: 'day',
    });
    upstream.begin(json(completion('Hi', { usage: USAGE })));
    await chat(gateway, hello({ model: 'large' }));

    const shown = await metricsOf(gateway);
    const id = gateway.firstRun.organizationId;
    const limits = [`organization ${id} all_time`, `organization ${id} recurring`] as const;
    expect(valuesOf(shown, 'budget_limit_usd')).toEqual({ [limits[0]]: 5, [limits[1]]: 0.5 });
    expect(valuesOf(shown, 'budget_spent_usd')).toEqual({ [limits[0]]: 0.0006, [limits[1]]: 0.0006 });

    setOrganizationBudget({ usageLimit: null, periodUsageLimit: null });
    expect(valuesOf(await metricsOf(gateway), 'budget_limit_usd')).toEqual({});
  });

  it('have no budget unless BUDGET_METRICS is on, and 500 at most', async () => {
    await start();
    setOrganizationBudget({ usageLimit: '5' });
    const { text } = await send(gateway.management, { path: '/metrics' });
    expect(text).not.toContain('portcullis_budget');

    const { organizationId } = gateway.firstRun;
    for (let member = 0; member < 600; member += 1) {
      const owner = { organizationId, scope: 'member', subjectId: `mem_${member}` } as const;
      setBudget(gateway.db, owner, { usageLimit: 1n, period: null });
    }
    expect(listWatchedBudgets(gateway.db, Date.now())).toHaveLength(500);
  });

  it('are those of one container, besides those of the process', async () => {
    await start();
    await chat(gateway, hello());
    const other = await startGateway();
    const [own, others] = [await metricsOf(gateway), await metricsOf(other)];
    await other.close();

    expect([valuesOf(own, 'calls_total'), valuesOf(others, 'calls_total')]).toEqual([
      { 'chat sandbox sandbox-paid none': 1 },
      {},
    ]);
    expect(others.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['process_cpu_seconds_total', 'nodejs_eventloop_lag_p99_seconds']),
    );
  });
});

describe('GET /metrics', () => {
  const TOKEN = 'a-token-of-the-operator';
  const look = async (...headers: (readonly [string, string])[]) => {
    const answer = await send(gateway.management, { path: '/metrics', headers });
    return answer.status === 200 ? 200 : [answer.status, errorOf(answer).code];
  };
  const PROXIED = [
    ['X-Forwarded-For', '127.0.0.1'],
    ['Forwarded', 'for=127.0.0.1'],
    ['X-Real-IP', '127.0.0.1'],
    ['Via', '1.1 proxy'],
  ] as const;

  it('is text for this machine itself, without any key, on the management host alone', async () => {
    await start();

    const answer = await send(gateway.management, { path: '/metrics' });

    expect([answer.status, answer.headers['content-type']]).toEqual([200, 'text/plain; version=0.0.4; charset=utf-8']);
    expect((await send(gateway.origin, { path: '/metrics' })).status).toBe(404);
  });

  it.each(PROXIED)(
    'is 403 through a proxy (%s) while there is no token, whatever the proxy says',
    async (...header) => {
      await start({ TRUSTED_PROXIES: '127.0.0.0/8' });

      expect(await look(header)).toEqual([403, 'permission_denied']);
      expect(await look(header, bearer(TOKEN))).toEqual([403, 'permission_denied']);
    },
  );

  it('takes the token from everywhere, and nothing else but it', async () => {
    await start({ METRICS_TOKEN: TOKEN });
    const [proxied] = PROXIED;
    const refused = [401, 'invalid_api_key'];

    expect(await look()).toBe(200);
    expect(await look(proxied, bearer(TOKEN))).toBe(200);
    for (const wrong of [`${TOKEN}x`, TOKEN.slice(1), TOKEN.toUpperCase(), gateway.firstRun.masterKey]) {
      expect(await look(proxied, bearer(wrong))).toEqual(refused);
    }
    expect(await look(proxied)).toEqual(refused);
    expect(await look(proxied, ['authorization', `Basic ${TOKEN}`])).toEqual(refused);
    expect(await look(proxied, bearer(TOKEN), bearer(TOKEN))).toEqual([400, 'invalid_request']);
  });
});

const catalog = createCatalog({ sandbox: true, upstreams: [], clock: systemClock });

/** Of the policy in force: the first half of what an answer says of it. */
const policyRevision = async (): Promise<string> =>
  String((await chat(gateway, hello())).headers['x-policy-revision']).split('.')[0] ?? '';

/** A model of the customer's own at the test's upstream. */
function addCustomModel(provider: string, model: string): void {
  const actor = { kind: 'cli', organizationId: gateway.firstRun.organizationId } as const;
  const write = {
    now: Date.now(),
    encryptionKey: loadSecrets(gateway.dataDir, { create: false }).encryptionKeys[0],
    catalog,
    allowPrivateUpstreams: gateway.config.allowPrivateUpstreams,
  };
  const { customProvider } = createCustomProvider(
    gateway.db,
    actor,
    { name: provider, baseUrl: `${upstream.origin}/v1` },
    write,
  );
  createProviderKey(gateway.db, actor, { label: provider, provider: `custom:${provider}`, token: 'sk-x' }, write);
  createCustomModel(gateway.db, actor, { customProviderId: customProvider.id, model }, write.now);
}
