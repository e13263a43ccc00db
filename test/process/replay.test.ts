// What was decided can be judged again to the same bytes, whatever happens to the process, to the database and to the rules.
import { rmSync } from 'node:fs';
import { expect, it, onTestFinished } from 'vitest';
import { changeRule } from '../../src/admin/rules/iam-rules.ts';
import { createCatalog } from '../../src/catalog/catalog.ts';
import { createContainer } from '../../src/container.ts';
import { canonicalRule } from '../../src/domain/rule-content.ts';
import { systemClock } from '../../src/domain/time.ts';
import type { ReplayReport, RuleCreate } from '../../src/generated/types.ts';
import { compileSubjectRules, dataDocument } from '../../src/policy/data-document.ts';
import { createPdp } from '../../src/policy/pdp.ts';
import { replay, replayBy } from '../../src/workbench/replay/replay.ts';
import { readWorld } from '../../src/workbench/world/world.ts';
import { addKey, addRule, removeRule, startGateway, type TestGateway, testConfig } from '../support/gateway.ts';

/** The done-when numbers are 10,000 of each; fewer changes where the run is to be short. */
const DECISIONS = Number(process.env.REPLAY_DECISIONS ?? 10_000);
const RULE_CHANGES = Number(process.env.RULE_CHANGES ?? 1000);
const CONNECTIONS = 32;
const TIMEOUT = 600_000 + 300 * RULE_CHANGES;
const UNLIMITED = { RATE_LIMIT_CHAT_PER_MINUTE: 'off' };

interface Asked {
  readonly token: string;
  readonly model: string;
  readonly address: string;
}

/** Calls on 32 connections until there is no next one; @returns how often each status came. */
async function callUntil(origin: string, next: () => Asked | undefined): Promise<Record<number, number>> {
  const statuses: Record<number, number> = {};
  const client = async (): Promise<void> => {
    for (let asked = next(); asked !== undefined; asked = next()) {
      const response = await fetch(`${origin}/v1/chat/completions`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${asked.token}`,
          'content-type': 'application/json',
          'x-forwarded-for': asked.address,
        },
        body: JSON.stringify({ model: asked.model, messages: [{ role: 'user', content: 'Hello' }] }),
      });
      await response.arrayBuffer();
      statuses[response.status] = (statuses[response.status] ?? 0) + 1;
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, client));
  return statuses;
}

/** What the management API says of all decisions, by the rules that they saw. */
async function replayed(management: string, masterKey: string) {
  const response = await fetch(`${management}/v1/master/policy/replay`, {
    method: 'POST',
    headers: { authorization: `Bearer ${masterKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ recorded: true }),
  });
  const report: ReplayReport = JSON.parse(await response.text());
  const { decisions, unchanged, unjudged, otherPolicies, recorded } = report;
  return { decisions, unchanged, unjudged, otherPolicies, recorded };
}

const identical = (decisions: number) => ({
  decisions,
  unchanged: decisions,
  unjudged: [],
  otherPolicies: [],
  recorded: { identical: decisions, different: 0, differences: [] },
});

/** Rules of every kind, scope and mode; one so long that its document is stored in parts. */
const RULES: readonly (readonly ['organization' | 'member' | 'key', RuleCreate])[] = [
  ['organization', { ruleType: 'deny_models', ruleValue: { models: ['sandbox-fa*', 'sandbox-slow'] } }],
  ['organization', { ruleType: 'allow_ip_cidrs', ruleValue: { ipCidrs: ['10.0.0.0/8', '2001:db8::/32'] } }],
  ['member', { ruleType: 'allow_pricing', ruleValue: { maxInputPrice: '0.5' }, mode: 'report' }],
  ['member', { ruleType: 'deny_providers', ruleValue: { providers: ['openai', 'custom'] } }],
  ['key', { ruleType: 'deny_ip_cidrs', ruleValue: { ipCidrs: ['10.1.0.0/16'] } }],
  ['key', { ruleType: 'deny_models', ruleValue: { models: Array.from({ length: 500 }, (_, n) => `model-${n}`) } }],
];

it(
  `the data of ${DECISIONS} decisions gives the same bytes after a rollback and a restart`,
  async () => {
    const gateway = await startGateway({ ...UNLIMITED, TRUSTED_PROXIES: '127.0.0.0/8' });
    onTestFinished(() => rmSync(gateway.dataDir, { recursive: true, force: true }));
    const masterKey = gateway.firstRun.masterKey;
    const keys = [gateway.firstRun.gatewayKey, ...[1, 2, 3].map(() => addKey(gateway).token)];
    for (const [scope, rule] of RULES) addRule(gateway, scope, rule);
    let made = 0;
    const statuses = await callUntil(gateway.origin, () => {
      if (made === DECISIONS) return undefined;
      made += 1;
      return {
        token: keys[made % keys.length] ?? '',
        model: `sandbox-${['free', 'paid', 'faulty'][made % 7] ?? 'slow'}`,
        address: `10.${made % 3}.0.${made % 200}`,
      };
    });
    expect(Object.keys(statuses)).toEqual(['200', '403']);
    expect(await replayed(gateway.management, masterKey)).toEqual(identical(DECISIONS));

    const { id } = addRule(gateway, 'organization', { ruleType: 'deny_models', ruleValue: { models: ['sandbox-*'] } });
    removeRule(gateway, 'organization', id);
    expect(await replayed(gateway.management, masterKey)).toEqual(identical(DECISIONS));

    gateway.db.close();
    await gateway.container.close();
    const restarted = await createContainer(testConfig(gateway.dataDir));
    expect(await replayed(restarted.management.origin, masterKey)).toEqual(identical(DECISIONS));
    await restarted.close();
  },
  TIMEOUT,
);

/** Digest of the data of the first key while nobody has rules but the organization, and that one says this. */
const digestOf = (gateway: TestGateway, id: string, rule: RuleCreate): string => {
  const { firstRun, memberId, keyId } = gateway;
  const none = compileSubjectRules([]);
  const rules = compileSubjectRules([{ ...canonicalRule(rule), id, mode: 'enforce' }]);
  return dataDocument([
    { id: firstRun.organizationId, rules },
    { id: memberId, rules: none },
    { id: keyId, rules: none },
  ]).digest;
};

it(
  `${RULE_CHANGES} rule changes under ${CONNECTIONS} connections: each decision saw data that existed, and no call fails`,
  async () => {
    const gateway = await startGateway(UNLIMITED);
    const { gatewayKey, organizationId } = gateway.firstRun;
    const ruleAt = (change: number): RuleCreate => ({
      ruleType: 'deny_models',
      ruleValue: { models: [`model-${change}`, ...(change % 2 === 0 ? ['sandbox-paid'] : [])] },
    });
    const { id } = addRule(gateway, 'organization', ruleAt(0));
    const existed = new Set([digestOf(gateway, id, ruleAt(0))]);
    let isOver = false;
    let calls = 0;
    const calling = callUntil(gateway.origin, () => {
      if (isOver) return undefined;
      calls += 1;
      return { token: gatewayKey, model: calls % 2 === 0 ? 'sandbox-free' : 'sandbox-paid', address: '192.0.2.1' };
    });
    const catalog = { mappings: () => [], providers: () => [] };
    for (let change = 1; change <= RULE_CHANGES; change += 1) {
      existed.add(digestOf(gateway, id, ruleAt(change)));
      const write = { catalog, trustedProxies: [], now: Date.now() };
      changeRule(gateway.db, { kind: 'cli', organizationId }, { kind: 'organization' }, id, ruleAt(change), write);
      await new Promise((resolve) => setImmediate(resolve));
    }
    isOver = true;
    const statuses = await calling;
    const failed = Object.entries(statuses).filter(([status]) => !['200', '403'].includes(status));
    const seen = gateway.db.connection
      .prepare<[], string>('SELECT dataDigest FROM decisions GROUP BY dataDigest')
      .pluck()
      .all();
    expect(failed).toEqual([]);
    expect(seen.filter((digest) => !existed.has(digest))).toEqual([]);
    expect(seen.length).toBeGreaterThan(RULE_CHANGES / 100);
    // By itself, because the API replays 100,000 decisions at most.
    const world = readWorld(gateway.db, {
      catalog: createCatalog({ sandbox: true, upstreams: [], clock: systemClock }),
      servedProviders: new Set(),
    });
    const filter = { organizationId, from: 0, to: Date.now() + 1000 };
    const report = replay(gateway.db, replayBy(createPdp(), world, 'recorded'), { filter, groupBy: [] }, () => {});
    expect(report).toMatchObject(identical(calls));
    process.stdout.write(`${RULE_CHANGES} rule changes, ${calls} calls, ${seen.length} documents seen\n`);
    await gateway.close();
  },
  TIMEOUT,
);
