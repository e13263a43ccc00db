// Who may change a rule could fill the disk with it: what a change adds to the database is proportional to the change, and not to the
// rules, the keys or the organization around it. What happened can still be told, and every decision be made again.
import { statSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { listAudit } from '../../src/admin/audit/audit.ts';
import { changeRule, listRules } from '../../src/admin/rules/iam-rules.ts';
import { createCatalog } from '../../src/catalog/catalog.ts';
import type { AuditRecord, IamRule, RulePatch } from '../../src/generated/types.ts';
import type { ListRun } from '../../src/lib/collections.ts';
import { validator } from '../../src/lib/schemas.ts';
import { createPdp } from '../../src/policy/pdp.ts';
import { verifyAuditChain } from '../../src/store/audit/audit-entries.ts';
import { databasePath } from '../../src/store/db/data-dir.ts';
import { getDataDocument } from '../../src/store/ledger/references.ts';
import { bearer, JSON_TYPE } from '../support/chat.ts';
import {
  addKey,
  addRule,
  type RuleScope,
  removeRule,
  ruleOwner,
  startGateway,
  type TestGateway,
} from '../support/gateway.ts';
import { send } from '../support/request.ts';
import { decisionRows } from '../support/rows.ts';

const validatePolicyInput = validator('PolicyInput');

let gateway: TestGateway;

beforeEach(async () => {
  gateway = await startGateway();
});
afterEach(() => gateway.close());

const actorOf = () => ({ kind: 'cli', organizationId: gateway.firstRun.organizationId }) as const;

function change(scope: RuleScope, id: string, patch: RulePatch): IamRule {
  const now = Date.now();
  const catalog = createCatalog({ sandbox: true, upstreams: [], clock: { now: () => now } });
  return changeRule(gateway.db, actorOf(), ruleOwner(gateway, scope), id, patch, { catalog, trustedProxies: [], now })
    .rule;
}

async function call(token = gateway.firstRun.gatewayKey): Promise<number> {
  const { status } = await send(gateway.origin, {
    method: 'POST',
    path: '/v1/chat/completions',
    headers: [bearer(token), JSON_TYPE],
    body: JSON.stringify({ model: 'sandbox-free', messages: [{ role: 'user', content: 'Hello' }] }),
  });
  return status;
}

const valuesOf = (rule: number, count = 1000): string[] =>
  Array.from({ length: count }, (_, index) => `acme/model-${rule}-${index}-of-a-long-family`);

const deny = (models: string[]) => ({ ruleType: 'deny_models' as const, ruleValue: { models } });

/** Five rules of one subject that together have 4,900 values; 5,000 is the most. */
const addLongRules = (scope: RuleScope): [IamRule, ...IamRule[]] => [
  addRule(gateway, scope, deny(valuesOf(0, 900))),
  ...[1, 2, 3, 4].map((rule) => addRule(gateway, scope, deny(valuesOf(rule)))),
];

/** Bytes of the database once its log is moved into it. */
function databaseSize(): number {
  gateway.db.connection.pragma('wal_checkpoint(TRUNCATE)');
  return statSync(databasePath(gateway.dataDir)).size;
}

/** By how many bytes the database has grown, on average of so many times. */
async function growthOf(times: number, work: (time: number) => Promise<unknown> | unknown): Promise<number> {
  const before = databaseSize();
  for (let time = 0; time < times; time++) await work(time);
  return (databaseSize() - before) / times;
}

/** What a call without a change adds: its own rows. */
const PER_CALL = 3_000;
const PER_CHANGE = 12_000;
const TIMES = 20;

describe('one value added to a key of 5,000 in five rules', () => {
  it('adds a few kilobytes to the database, the call that follows included', async () => {
    const [{ id }] = addLongRules('key');
    expect(await call()).toBe(200);
    const grown = await growthOf(TIMES, async (time) => {
      change('key', id, deny([...valuesOf(0, 900), `acme/new-${time}`]));
      expect(await call()).toBe(200);
    });
    expect(grown).toBeLessThan(PER_CHANGE + PER_CALL);
  });

  it('writes little to the log, too', async () => {
    const [{ id }] = addLongRules('key');
    databaseSize();
    change('key', id, deny([...valuesOf(0, 900), 'acme/new']));
    const log = statSync(`${databasePath(gateway.dataDir)}-wal`).size;
    expect(log).toBeGreaterThan(0);
    expect(log).toBeLessThan(150_000);
  });

  it('adds as little for each key of an organization whose rules they are', async () => {
    const [{ id }] = addLongRules('organization');
    const keys = Array.from({ length: 10 }, () => addKey(gateway).token);
    for (const key of keys) expect(await call(key)).toBe(200);
    const grown = await growthOf(5, async (time) => {
      change('organization', id, deny([...valuesOf(0, 900), `acme/new-${time}`]));
      for (const key of keys) expect(await call(key)).toBe(200);
    });
    expect(grown).toBeLessThan(PER_CHANGE + keys.length * PER_CALL);
  });
});

describe('other small changes of a key of 5,000 values', () => {
  it.each<[string, (rules: readonly IamRule[], time: number) => unknown]>([
    [
      'a value in the place of another',
      ([rule], time) => change('key', rule?.id ?? '', deny(valuesOf(0, 900).with(time, 'acme/x'))),
    ],
    ['a value less', ([rule], time) => change('key', rule?.id ?? '', deny(valuesOf(0, 900).toSpliced(0, time + 1)))],
    [
      'a value that moves',
      ([rule], time) =>
        change(
          'key',
          rule?.id ?? '',
          deny([`acme/model-0-${time}-of-a-long-family`, ...valuesOf(0, 900).toSpliced(time, 1)]),
        ),
    ],
    ['a description', ([rule], time) => change('key', rule?.id ?? '', { description: `${time}` })],
    ['a small rule', (_, time) => addRule(gateway, 'key', deny([`acme/other-${time}`]))],
    [
      'a small rule that comes and goes',
      () => removeRule(gateway, 'key', addRule(gateway, 'key', deny(['acme/other'])).id),
    ],
  ])('add as little: %s', async (_, work) => {
    const rules = addLongRules('key');
    expect(await call()).toBe(200);
    const grown = await growthOf(TIMES, async (time) => {
      work(rules, time);
      expect(await call()).toBe(200);
    });
    expect(grown).toBeLessThan(2 * PER_CHANGE + PER_CALL);
  });

  it('add as little when a long rule is switched off and on again and again', async () => {
    const [{ id }] = addLongRules('key');
    const toggle = async (): Promise<void> => {
      for (const status of ['inactive', 'active'] as const) {
        change('key', id, { status });
        expect(await call()).toBe(200);
      }
    };
    await toggle();
    expect(await growthOf(TIMES, toggle)).toBeLessThan(2 * (PER_CHANGE + PER_CALL));
  });
});

describe('what was changed by what', () => {
  /** The list before or after a change, by the other and the entry of the log. */
  const runsOf = (entry: AuditRecord, side: 'before' | 'after'): readonly ListRun[] => {
    const { models } = Object(entry[side]?.ruleValue);
    return models[side === 'before' ? 'removed' : 'added'] ?? [];
  };
  const without = (list: readonly string[], runs: readonly ListRun[]): string[] => {
    const places = new Set(runs.flatMap(({ at, entries }) => entries.map((_, index) => at + index)));
    return list.filter((_, place) => !places.has(place));
  };
  const putting = (list: readonly string[], runs: readonly ListRun[]): string[] =>
    runs.reduce((grown, { at, entries }) => grown.toSpliced(at, 0, ...entries), [...list]);

  it('can be told forwards and backwards from the audit log, which holds', () => {
    const first = valuesOf(0, 900);
    const { id } = addRule(gateway, 'key', deny(first));
    const lists = [
      first.toSpliced(500, 0, 'acme/new'),
      first.toSpliced(10, 3, 'acme/new', 'acme/newer'),
      first.toReversed().slice(300),
      ['acme/last', ...first.slice(700)],
    ];
    for (const models of lists) change('key', id, deny(models));
    removeRule(gateway, 'key', id);

    const { entries } = listAudit(gateway.db, actorOf(), { targetId: id, limit: 50 });
    const [deleted, ...rest] = entries;
    const updates = rest.slice(0, -1).reverse();
    const created = rest.at(-1);
    expect([deleted?.action, updates.length, created?.action]).toEqual(['rule.delete', lists.length, 'rule.create']);
    const told: string[][] = [Object(created?.after?.ruleValue).models];
    for (const entry of updates)
      told.push(putting(without(told.at(-1) ?? [], runsOf(entry, 'before')), runsOf(entry, 'after')));
    expect(told).toEqual([first, ...lists]);
    const toldBack: string[][] = [Object(deleted?.before?.ruleValue).models];
    for (const entry of updates.toReversed())
      toldBack.unshift(putting(without(toldBack[0] ?? [], runsOf(entry, 'after')), runsOf(entry, 'before')));
    expect(toldBack).toEqual([first, ...lists]);

    const { auditKey } = gateway.db;
    if (auditKey === undefined) throw new Error('the database was opened without the audit key');
    expect(verifyAuditChain(gateway.db, auditKey, undefined, () => {}).fault).toBeUndefined();
  });

  it('leaves nothing of a rule that is deleted but what the log has', () => {
    const { id } = addRule(gateway, 'key', deny(valuesOf(0)));
    change('key', id, deny(valuesOf(1)));
    removeRule(gateway, 'key', id);
    const parts = gateway.db.connection.prepare('SELECT count(*) FROM rule_parts').pluck().get();
    expect([parts, listRules(gateway.db, actorOf(), ruleOwner(gateway, 'key'), { limit: 1 }).rules]).toEqual([0, []]);
  });
});

describe('every decision', () => {
  it('can be made again from what is stored, byte by byte, after each change of the rules that it saw', async () => {
    addLongRules('organization');
    addRule(gateway, 'member', deny(['sandbox-paid']));
    const [{ id }] = addLongRules('key');
    for (const patch of [
      deny(['acme/first', ...valuesOf(0, 900)]),
      { mode: 'report' },
      deny(valuesOf(0, 450)),
      { ...deny(valuesOf(0, 450)), ruleType: 'allow_models', mode: 'enforce' },
      { status: 'inactive' },
      { ruleType: 'deny_ip_cidrs', ruleValue: { ipCidrs: ['192.0.2.0/24', '2001:db8::/32'] }, status: 'active' },
    ] satisfies RulePatch[]) {
      change('key', id, patch);
      await call();
    }
    const pdp = createPdp();
    const rows = decisionRows(gateway);
    for (const row of rows) {
      const input: unknown = JSON.parse(row.inputJson);
      if (!validatePolicyInput(input)) throw new Error('the input is none');
      const text = getDataDocument(gateway.db, gateway.firstRun.organizationId, row.id);
      const { permitted, violations } = pdp.decide(input, { text, digest: row.dataDigest });
      expect([permitted.length > 0 ? 'permit' : 'deny', JSON.stringify(violations)]).toEqual([
        row.outcome,
        row.violationsJson,
      ]);
    }
    pdp.close();
    expect(rows.map(({ outcome }) => outcome)).toEqual(['permit', 'permit', 'permit', 'deny', 'permit', 'deny']);
    expect(new Set(rows.map((row) => row.dataDigest)).size).toBe(6);
  });
});
