// The policy enforcement point: only `authorize` makes a Permitted, and it holds only what the policy permits at the time.
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { changeGroup, createGroup } from '../../../src/admin/rules/groups.ts';
import { createRule } from '../../../src/admin/rules/iam-rules.ts';
import { createCatalog } from '../../../src/catalog/catalog.ts';
import * as authorizeModule from '../../../src/core/authorize.ts';
import { type CallContext, createDocuments, type Permitted, type Principal } from '../../../src/core/authorize.ts';
import { createAuthenticate } from '../../../src/core/caller.ts';
import { ApiError } from '../../../src/domain/errors.ts';
import { hashSecret } from '../../../src/domain/id.ts';
import type { Mapping } from '../../../src/domain/model.ts';
import { systemClock } from '../../../src/domain/time.ts';
import { PolicyFailure } from '../../../src/policy/data-document.ts';
import { createActivePolicy, createPdp, type Pdp } from '../../../src/policy/pdp.ts';
import { databasePath } from '../../../src/store/db/data-dir.ts';
import { rehash } from '../../../src/store/secrets/rotate-secrets.ts';
import { loadSecrets } from '../../../src/store/secrets/secrets.ts';
import { createStore, type Store } from '../../../src/store/store.ts';
import { createTelemetry } from '../../../src/telemetry/telemetry.ts';
import { createPolicyKeeper } from '../../../src/workbench/bundles/policy-keeper.ts';
import { addRule, removeRule, startGateway, type TestGateway } from '../../support/gateway.ts';

const { authorize: judge, Denial } = authorizeModule;

let gateway: TestGateway;
let store: Store;
let pdp: Pdp;
let principal: Principal;
let decided: [id: string, revision: string][];

const catalog = createCatalog({ sandbox: true, upstreams: [], clock: systemClock });
const mappingsOf = (...models: string[]): Mapping[] => models.flatMap((model) => catalog.resolve(model) ?? []);

beforeEach(async () => {
  gateway = await startGateway();
  store = createStore({ path: databasePath(gateway.dataDir), clock: systemClock });
  pdp = createPdp();
  decided = [];
  principal = await authenticated();
});

afterEach(async () => {
  store.close();
  pdp.close();
  await gateway.close();
});

const authenticated = (): Promise<Principal> => {
  const { peppers } = loadSecrets(gateway.dataDir, { create: false });
  return createAuthenticate({ store, clock: systemClock, peppers })(gateway.firstRun.gatewayKey);
};

it('a key that another call moves under the newer pepper is found, though that pepper was tried before', async () => {
  const { peppers } = loadSecrets(gateway.dataDir, { create: false });
  const [older] = peppers;
  const newer = { id: 'newer', key: Buffer.alloc(32, 7) };
  const authenticate = createAuthenticate({ store, clock: systemClock, peppers: [newer, older] });
  const token = gateway.firstRun.gatewayKey;
  const secretHash = hashSecret(token, older);
  const { organizationId, keyId: id } = principal;
  // The newer pepper was asked for when the call returns here for the first time.
  const found = authenticate(token);
  gateway.db.transaction(() => rehash(gateway.db, { table: 'keys', organizationId, id, secretHash }, token, newer));
  expect((await found).keyId).toBe(id);
  await expect(authenticate(`${token.slice(0, -1)}x`)).rejects.toThrow(ApiError);
});

const context = (): CallContext => ({
  requestId: 'req_1',
  clientRequestId: undefined,
  arrivedAt: performance.now(),
  receivingMs: 0,
  clientIp: '192.0.2.7',
  signal: new AbortController().signal,
  noFallback: false,
  noCache: false,
  onDecision: (id, revision) => decided.push([id, revision]),
  onDenial: () => {},
  onCall: () => {},
  room: () => {},
  onDropped: () => {},
  onCacheHit: () => {},
  onEnd: () => {},
});

const telemetry = createTelemetry({ level: 'silent', accessLog: 'off' });

async function authorize(candidates: readonly Mapping[], engine: () => Pdp = () => pdp): Promise<Permitted> {
  const deps = { store, documents: createDocuments(store), pdp: engine, telemetry };
  const findFacts = (): never => {
    throw new Error('the policy of the installation takes no facts');
  };
  return judge(deps, { principal: await authenticated(), context: context(), action: 'chat', candidates, findFacts });
}

const thrown = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  );

describe('a Permitted', () => {
  it('cannot be had but from authorize: its class is not exported, and nothing else has its type', () => {
    const lookalike = {
      decision: { id: 'dec_1' },
      candidates: mappingsOf('sandbox-free'),
      narrowed: () => lookalike,
      assertHolds: async () => {},
    };
    // @ts-expect-error: the class has private fields, so no object literal is one (checked by `npm run typecheck`).
    const permitted: Permitted = lookalike;

    expect(permitted).toBe(lookalike);
    expect(Object.keys(authorizeModule).sort()).toEqual([
      'Denial',
      'authorize',
      'createDocuments',
      'decisionRecord',
      'policyRevision',
      'recordedResult',
      'subjectsOf',
      'tellDenial',
      'toApiError',
    ]);
  });

  it('holds the permitted candidates alone, and tells of its decision', async () => {
    addRule(gateway, 'key', { ruleType: 'deny_models', ruleValue: { models: ['sandbox-paid'] } });

    const permitted = await authorize(mappingsOf('sandbox-free', 'sandbox-paid'));

    expect(permitted.candidates.map(({ id }) => id)).toEqual(['sandbox/sandbox-free']);
    expect(decided).toEqual([[permitted.decision.id, `${pdp.bundleDigest.slice(0, 12)}.1`]]);
  });

  it('holds by the groups that the key is in when it is used', async () => {
    const [free] = mappingsOf('sandbox-free');
    if (free === undefined) throw new Error('the sandbox lacks a model');
    const permitted = await authorize([free]);
    const { organizationId } = gateway.firstRun;
    const actor = { kind: 'cli', organizationId } as const;
    const now = Date.now();
    const { id } = createGroup(gateway.db, actor, { name: 'contractors' }, now).group;
    const deny = { ruleType: 'deny_models', ruleValue: { models: ['sandbox-free'] } };
    createRule(gateway.db, actor, { kind: 'group', group: id }, deny, { now, catalog, trustedProxies: [] });
    await nextTurn();
    await permitted.assertHolds(free);

    changeGroup(gateway.db, actor, id, { addKeys: [gateway.keyId] }, now);
    await nextTurn();
    await expect(permitted.assertHolds(free)).rejects.toThrow('This is a group IAM rule (contractors) set by');

    changeGroup(gateway.db, actor, id, { removeKeys: [gateway.keyId] }, now);
    await nextTurn();
    await permitted.assertHolds(free);
  });

  it('is judged by the document of its own groups, whatever was read for the key before', async () => {
    const documents = createDocuments(store);
    const actor = { kind: 'cli', organizationId: gateway.firstRun.organizationId } as const;
    const { id } = createGroup(gateway.db, actor, { name: 'contractors' }, Date.now()).group;
    changeGroup(gateway.db, actor, id, { addKeys: [gateway.keyId] }, Date.now());
    await nextTurn();
    const joined = await authenticated();
    const asked = [joined, { ...principal, ruleRevision: joined.ruleRevision }, joined].map(documents);
    const subjects = (await Promise.all(asked)).map(({ text }) => Object.keys(JSON.parse(text).subjects).length);
    expect(subjects).toEqual([4, 3, 4]);
  });

  it('refuses to be used for a candidate that was not permitted, however it is narrowed', async () => {
    addRule(gateway, 'key', { ruleType: 'deny_models', ruleValue: { models: ['sandbox-paid'] } });
    const [free, paid] = mappingsOf('sandbox-free', 'sandbox-paid');
    if (free === undefined || paid === undefined) throw new Error('the sandbox lacks a model');

    const permitted = await authorize([free, paid]);

    expect(permitted.narrowed(() => true).candidates).toEqual([free]);
    expect(permitted.narrowed(() => false).candidates).toEqual([]);
    await permitted.assertHolds(free);
    await expect(permitted.assertHolds(paid)).rejects.toThrow('sandbox/sandbox-paid was never permitted');
    await expect(permitted.narrowed(() => true).assertHolds(paid)).rejects.toThrow('was never permitted');
  });

  it('is asked again when the rules change after it was given, and holds again when they change back', async () => {
    const [free] = mappingsOf('sandbox-free');
    if (free === undefined) throw new Error('the sandbox lacks a model');
    const permitted = await authorize([free]);
    const { id } = addRule(gateway, 'member', { ruleType: 'deny_models', ruleValue: { models: ['sandbox-free'] } });
    await nextTurn();

    const refused = await thrown(permitted.assertHolds(free));

    expect(refused).toBeInstanceOf(ApiError);
    expect(refused).toMatchObject({ status: 403, code: 'permission_denied', message: expect.stringContaining(id) });
    removeRule(gateway, 'member', id);
    await nextTurn();
    await permitted.assertHolds(free);
  });
});

describe('a denial', () => {
  it('carries its decision and the reason, and answers 403', async () => {
    const { id } = addRule(gateway, 'organization', { ruleType: 'allow_models', ruleValue: { models: ['other'] } });

    const denial = await thrown(authorize(mappingsOf('sandbox-free')));

    if (!(denial instanceof Denial)) throw new Error('no denial');
    expect(denial.answer()).toMatchObject({ status: 403, code: 'permission_denied' });
    expect(denial.reason).toMatchObject({ scope: 'organization', kind: 'models', effect: 'allow', ruleIds: [id] });
    expect([denial.decision.result.permitted, decided.length]).toEqual([[], 1]);
  });
});

describe('a failure to evaluate', () => {
  it('is thrown as such, without a decision', async () => {
    const closed = createPdp();
    closed.close();

    const failure = await thrown(authorize(mappingsOf('sandbox-free'), () => closed));

    expect(failure).toBeInstanceOf(PolicyFailure);
    expect(decided).toEqual([]);
  });

  it('on a later attempt refuses it', async () => {
    const [free] = mappingsOf('sandbox-free');
    if (free === undefined) throw new Error('the sandbox lacks a model');
    const permitted = await authorize([free]);
    addRule(gateway, 'key', { ruleType: 'deny_models', ruleValue: { models: ['other'] } });
    gateway.db.connection.prepare('UPDATE subject_rules SET compiledJson = ?').run('{"enforce":');

    await expect(permitted.assertHolds(free)).rejects.toBeInstanceOf(PolicyFailure);
  });
});

describe('a principal', () => {
  it('is judged by the rules of its organization, its member and itself, outermost first', () => {
    expect(principal).toEqual({
      keyId: gateway.keyId,
      organizationId: gateway.firstRun.organizationId,
      projectId: gateway.firstRun.projectId,
      memberId: gateway.memberId,
      subjects: [
        { scope: 'organization', id: gateway.firstRun.organizationId },
        { scope: 'member', id: gateway.memberId },
        { scope: 'key', id: gateway.keyId },
      ],
      keyTags: [],
      ruleRevision: 0,
      capped: false,
      rates: [],
    });
  });

  it('is found under any accepted pepper, and from then on under the current one', async () => {
    const [pepper] = loadSecrets(gateway.dataDir, { create: false }).peppers;
    const other = { id: 'new', key: Buffer.alloc(32, 7) };
    const authenticate = (peppers: readonly [typeof pepper, ...(typeof pepper)[]]) =>
      createAuthenticate({ store, clock: systemClock, peppers })(gateway.firstRun.gatewayKey);

    expect(await thrown(authenticate([other]))).toMatchObject({ status: 401, code: 'invalid_api_key' });
    expect((await authenticate([other, pepper])).keyId).toBe(gateway.keyId);
    await store.write(() => {}); // Behind the one that renews the hash.
    expect((await authenticate([other])).keyId).toBe(gateway.keyId);
    expect(await thrown(authenticate([pepper]))).toMatchObject({ status: 401, code: 'invalid_api_key' });
    await authenticate([pepper, other]);
    await store.write(() => {});
    expect((await authenticate([pepper])).keyId).toBe(gateway.keyId);
  });
});

describe('the policy in force', () => {
  it('is one that has passed its own test', async () => {
    const keeper = await createPolicyKeeper({
      config: gateway.config,
      clock: systemClock,
      telemetry,
    });

    expect(createActivePolicy(keeper.inForce()).pdp().bundleDigest).toBe(pdp.bundleDigest);
    await keeper.close();
  });
});
