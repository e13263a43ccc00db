// The specification's "States and transitions" of a gateway API key: one test for each row, and for each refused transition of
// src/admin/README.md, "changes of state". Management by the functions behind the master API, the command line and the dashboard;
// calls over HTTP.
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Actor } from '../../../src/admin/audit/audit-trail.ts';
import {
  changeKey,
  deleteKey,
  disableKey,
  enableKey,
  getKey,
  reactivateKey,
  rollKey,
  startExpiringKeys,
} from '../../../src/admin/keys/keys.ts';
import { createPlatformKey, playgroundKey } from '../../../src/admin/keys/platform-keys.ts';
import { createRule, listRules } from '../../../src/admin/rules/iam-rules.ts';
import { createCatalog } from '../../../src/catalog/catalog.ts';
import type { Pepper } from '../../../src/domain/id.ts';
import { ManualClock } from '../../../src/domain/time.ts';
import type { KeyRecord } from '../../../src/generated/types.ts';
import { databasePath } from '../../../src/store/db/data-dir.ts';
import { loadSecrets } from '../../../src/store/secrets/secrets.ts';
import { createStore } from '../../../src/store/store.ts';
import { chat, errorOf, hello } from '../../support/chat.ts';
import { addKey, startGateway, type TestGateway, type TestKey } from '../../support/gateway.ts';
import { addOwnModels, FLAT } from '../../support/own-models.ts';
import { callRows } from '../../support/rows.ts';
import { startUpstream, type TestUpstream } from '../../support/upstream.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const START = '2026-11-21T12:00:00.000Z';

const clock = new ManualClock(START);
let upstream: TestUpstream;
let gateway: TestGateway;
let actor: Actor;
let pepper: Pepper;
let auditKey: Buffer;

beforeAll(async () => {
  upstream = await startUpstream();
  gateway = await startGateway({ ALLOW_PRIVATE_UPSTREAMS: new URL(upstream.origin).host }, { clock });
  addOwnModels(gateway.db, gateway.firstRun, upstream.origin, gateway.config.allowPrivateUpstreams, { flat: FLAT });
  actor = { kind: 'cli', organizationId: gateway.firstRun.organizationId };
  const { peppers, signingKey } = loadSecrets(gateway.dataDir, { create: false });
  [pepper] = peppers;
  auditKey = signingKey.key;
});

afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

beforeEach(() => clock.set(START));

const now = (): number => clock.now();
const record = ({ id }: Pick<TestKey, 'id'>): KeyRecord => getKey(gateway.db, actor, id, now()).key;
const states = (key: TestKey): string => `${record(key).status} ${record(key).state}`;

/** What a request with the key is answered: its status, and the code of a refusal. Each call costs a cent. */
async function ask({ token }: Pick<TestKey, 'token'>): Promise<string> {
  const answer = await chat(gateway, hello({ model: 'own/flat' }), { token });
  return answer.status === 200 ? '200' : `${answer.status} ${errorOf(answer).code}`;
}

const expiring = (minutes: number): TestKey => addKey(gateway, {}, now() + minutes * MINUTE, now());

const refusal = (status: number, param: string | null = null) => expect.objectContaining({ status, param });

describe('a gateway API key', () => {
  it('that is active, by the disable action, becomes disabled: requests with it are rejected, and it is not deleted', async () => {
    const key = addKey(gateway);
    expect([await ask(key), states(key)]).toEqual(['200', 'active active']);

    disableKey(gateway.db, actor, key.id, now());

    expect([await ask(key), states(key)]).toEqual(['401 api_key_disabled', 'inactive disabled']);
  });

  it.each([
    ['no TTL', () => addKey(gateway)],
    ['a TTL still in the future', () => expiring(60)],
  ])('that is disabled and has %s, by the enable action, becomes active', async (_, make) => {
    const key = make();
    disableKey(gateway.db, actor, key.id, now());

    enableKey(gateway.db, actor, key.id, now());

    expect([await ask(key), states(key)]).toEqual(['200', 'active active']);
  });

  it('that is disabled with its TTL in the past stays disabled by the enable action, and must be reactivated with a new future expiration', async () => {
    const key = expiring(60);
    disableKey(gateway.db, actor, key.id, now());
    clock.advance(HOUR);
    const before = record(key);

    expect(() => enableKey(gateway.db, actor, key.id, now())).toThrow(refusal(400, '/status'));
    expect(() => changeKey(gateway.db, actor, key.id, { status: 'active', description: 'x' }, now())).toThrow(
      refusal(400, '/status'),
    );
    expect([await ask(key), record(key)]).toEqual(['401 api_key_disabled', before]);

    reactivateKey(gateway.db, actor, key.id, now() + HOUR, now());
    expect([await ask(key), states(key)]).toEqual(['200', 'active active']);
  });

  it('that is active, when its TTL passes, is expired: requests get 401 at once, and a background job marks it inactive', async () => {
    const key = expiring(60);
    clock.advance(HOUR - 1);
    expect(await ask(key)).toBe('200');

    clock.advance(1);
    expect([await ask(key), states(key)]).toEqual(['401 api_key_expired', 'active expired']);

    const store = createStore({ path: databasePath(gateway.dataDir), clock, auditKey });
    const stop = startExpiringKeys(store, 1);
    while (record(key).status === 'active') await sleep(2);
    stop();
    store.close();
    expect([await ask(key), states(key)]).toEqual(['401 api_key_expired', 'inactive expired']);
  });

  it('that is expired, reactivated with a new expiration in the future, becomes active', async () => {
    const key = expiring(60);
    clock.advance(2 * HOUR);

    const { key: answered } = reactivateKey(gateway.db, actor, key.id, now() + HOUR, now());

    expect([await ask(key), states(key), answered.expiresAt]).toEqual([
      '200',
      'active active',
      '2026-11-21T15:00:00.000Z',
    ]);
    clock.advance(HOUR);
    expect(await ask(key)).toBe('401 api_key_expired');
  });

  it('that is expired is not reactivated with an expiration that is not in the future', async () => {
    const key = expiring(60);
    clock.advance(HOUR);

    expect(() => reactivateKey(gateway.db, actor, key.id, now(), now())).toThrow(refusal(400, '/expiresAt'));
    expect([await ask(key), states(key)]).toEqual(['401 api_key_expired', 'active expired']);
  });

  it.each([
    ['all-time', { usageLimit: '0.02' }],
    ['recurring', { periodUsageLimit: '0.02', periodUsageDurationValue: 1, periodUsageDurationUnit: 'hour' }],
  ] as const)(
    'that is active, when its spend reaches the %s limit, is limit-reached: requests get 401',
    async (_, limits) => {
      const key = addKey(gateway, limits);
      expect([await ask(key), await ask(key)]).toEqual(['200', '200']);

      expect([await ask(key), states(key)]).toEqual(['401 usage_limit_reached', 'active limit_reached']);
    },
  );

  it.each([
    ['all-time', { usageLimit: '0.01' }, { usageLimit: '0.02' }],
    ['all-time', { usageLimit: '0.01' }, { usageLimit: null }],
    [
      'recurring',
      { periodUsageLimit: '0.01', periodUsageDurationValue: 1, periodUsageDurationUnit: 'day' },
      { periodUsageLimit: '0.02', periodUsageDurationValue: 1, periodUsageDurationUnit: 'day' },
    ],
  ] as const)(
    'that is limit-reached, when its %s limit is raised or removed, becomes active',
    async (_, limits, raised) => {
      const key = addKey(gateway, limits);
      expect([await ask(key), await ask(key)]).toEqual(['200', '401 usage_limit_reached']);
      const begun = record(key).currentPeriodStartedAt;

      changeKey(gateway.db, actor, key.id, raised, now());

      expect([states(key), record(key).currentPeriodStartedAt, await ask(key)]).toEqual([
        'active active',
        begun,
        '200',
      ]);
    },
  );

  it('that is active, when its limit is lowered below what is spent, is limit-reached at once', async () => {
    const key = addKey(gateway, { usageLimit: '1' });
    expect([await ask(key), await ask(key)]).toEqual(['200', '200']);

    changeKey(gateway.db, actor, key.id, { usageLimit: '0.015' }, now());

    expect([await ask(key), states(key)]).toEqual(['401 usage_limit_reached', 'active limit_reached']);
  });

  it('that is limit-reached by its recurring limit becomes active when the next window starts; by its all-time limit it does not', async () => {
    const hourly = { periodUsageDurationValue: 1, periodUsageDurationUnit: 'hour' } as const;
    const [recurring, both] = [
      addKey(gateway, { periodUsageLimit: '0.01', ...hourly }),
      addKey(gateway, { periodUsageLimit: '0.01', usageLimit: '0.01', ...hourly }),
    ];
    expect([await ask(recurring), await ask(both)]).toEqual(['200', '200']);

    clock.advance(HOUR - 1);
    expect([await ask(recurring), states(recurring)]).toEqual(['401 usage_limit_reached', 'active limit_reached']);
    clock.advance(1);
    expect([states(recurring), await ask(recurring)]).toEqual(['active active', '200']);
    expect([states(both), await ask(both)]).toEqual(['active limit_reached', '401 usage_limit_reached']);
  });

  it('that is active, by the roll action, has a new secret, shown once, and keeps all the rest; the old secret is invalid at once', async () => {
    const key = addKey(
      gateway,
      {
        description: 'Kept',
        usageLimit: '0.03',
        periodUsageLimit: '0.02',
        periodUsageDurationValue: 2,
        periodUsageDurationUnit: 'day',
      },
      now() + 30 * 24 * HOUR,
      now(),
    );
    const world = {
      catalog: createCatalog({ sandbox: true, upstreams: [], clock }),
      trustedProxies: undefined,
      now: now(),
    };
    const ruleOwner = { kind: 'key', key: key.id } as const;
    createRule(
      gateway.db,
      actor,
      ruleOwner,
      { ruleType: 'deny_models', ruleValue: { models: ['sandbox-paid'] } },
      world,
    );
    await ask(key);
    clock.advance(HOUR);
    const [before, rules] = [record(key), listRules(gateway.db, actor, ruleOwner, { limit: 50 })];

    const { key: rolled } = rollKey(gateway.db, actor, key.id, { now: now(), pepper });

    const { token = '', ...shown } = rolled;
    expect(token).toMatch(/^pcl_[0-9A-Za-z]{46}$/);
    expect({ ...shown, maskedToken: '', updatedAt: '' }).toEqual({ ...before, maskedToken: '', updatedAt: '' });
    expect(shown).toMatchObject({
      description: 'Kept',
      usage: '0.01',
      currentPeriodUsage: '0.01',
      currentPeriodStartedAt: START,
      expiresAt: '2026-12-21T12:00:00.000Z',
    });
    expect([record(key), listRules(gateway.db, actor, ruleOwner, { limit: 50 })]).toEqual([shown, rules]);
    expect([await ask(key), (await chat(gateway, hello(), { token })).status]).toEqual(['401 invalid_api_key', 403]);
    expect([await ask({ token }), await ask({ token })]).toEqual(['200', '401 usage_limit_reached']);
    expect(callRows(gateway).filter((row) => row.keyId === key.id)).toHaveLength(3);
  });

  it.each([
    ['disabled', (key: TestKey) => disableKey(gateway.db, actor, key.id, now()), '401 api_key_disabled'],
    ['expired', () => clock.advance(HOUR), '401 api_key_expired'],
    [
      'limit_reached',
      (key: TestKey) => changeKey(gateway.db, actor, key.id, { usageLimit: '0' }, now()),
      '401 usage_limit_reached',
    ],
  ])('that is %s is rolled too, and stays what it is', async (state, become, answer) => {
    const key = expiring(60);
    become(key);
    const before = states(key);

    const { key: rolled } = rollKey(gateway.db, actor, key.id, { now: now(), pepper });

    expect([rolled.state, states(key)]).toEqual([state, before]);
    expect([await ask(key), await ask({ token: rolled.token ?? '' })]).toEqual(['401 invalid_api_key', answer]);
  });

  it.each([
    ['active', () => {}],
    ['disabled', (key: TestKey) => disableKey(gateway.db, actor, key.id, now())],
    ['expired', () => clock.advance(HOUR)],
    ['limit_reached', (key: TestKey) => changeKey(gateway.db, actor, key.id, { usageLimit: '0' }, now())],
  ])(
    'that is %s, by the delete action, is deleted: requests with it are rejected, and nothing can be done to it',
    async (state, become) => {
      const key = expiring(60);
      become(key);
      expect(record(key).state).toBe(state);

      deleteKey(gateway.db, actor, key.id, now());

      expect(await ask(key)).toBe('401 invalid_api_key');
      const actions = [
        () => record(key),
        () => changeKey(gateway.db, actor, key.id, { description: 'x' }, now()),
        () => disableKey(gateway.db, actor, key.id, now()),
        () => enableKey(gateway.db, actor, key.id, now()),
        () => reactivateKey(gateway.db, actor, key.id, now() + HOUR, now()),
        () => rollKey(gateway.db, actor, key.id, { now: now(), pepper }),
        () => deleteKey(gateway.db, actor, key.id, now()),
      ];
      for (const action of actions) expect(action).toThrow(refusal(404));
    },
  );

  it('shows the first of its states where several hold: disabled, expired, limit_reached', async () => {
    const key = addKey(gateway, { usageLimit: '0' }, now() + MINUTE, now());
    const told = [`${record(key).state}, ${await ask(key)}`];
    clock.advance(MINUTE);
    told.push(`${record(key).state}, ${await ask(key)}`);
    disableKey(gateway.db, actor, key.id, now());
    told.push(`${record(key).state}, ${await ask(key)}`);

    expect(told).toEqual([
      'limit_reached, 401 usage_limit_reached',
      'expired, 401 api_key_expired',
      'disabled, 401 api_key_disabled',
    ]);
  });
});

describe('a playground key', () => {
  it('cannot be rolled, renamed, limited, disabled, given rules or deleted', () => {
    const { organizationId, projectId } = gateway.firstRun;
    const { id } = playgroundKey(gateway.db, organizationId, gateway.memberId, projectId, now());
    const before = record({ id });
    const world = {
      catalog: createCatalog({ sandbox: true, upstreams: [], clock }),
      trustedProxies: undefined,
      now: now(),
    };
    const rule = { ruleType: 'deny_models', ruleValue: { models: ['x'] } };

    const actions = [
      () => rollKey(gateway.db, actor, id, { now: now(), pepper }),
      () => changeKey(gateway.db, actor, id, { description: 'x' }, now()),
      () => changeKey(gateway.db, actor, id, { usageLimit: '1' }, now()),
      () => changeKey(gateway.db, actor, id, { status: 'inactive' }, now()),
      () => disableKey(gateway.db, actor, id, now()),
      () => enableKey(gateway.db, actor, id, now()),
      () => reactivateKey(gateway.db, actor, id, now() + HOUR, now()),
      () => createRule(gateway.db, actor, { kind: 'key', key: id }, rule, world),
      () => deleteKey(gateway.db, actor, id, now()),
    ];

    for (const action of actions) expect(action).toThrow(refusal(403));
    expect(record({ id })).toEqual(before);
  });
});

describe('a platform secret key', () => {
  it('cannot be rolled, and authenticates no gateway call; it can be deleted', async () => {
    const { projectId } = gateway.firstRun;
    const body = { projectId, createdBy: gateway.memberId };
    const { platformKey: key } = createPlatformKey(gateway.db, actor, body, { now: now(), pepper });

    expect(() => rollKey(gateway.db, actor, key.id, { now: now(), pepper })).toThrow(refusal(403));
    expect(await ask({ token: key.token ?? '' })).toBe('401 invalid_api_key');
    expect(deleteKey(gateway.db, actor, key.id, now())).toEqual({ id: key.id, deleted: true });
  });
});
