// What report rules would have changed is counted once for each decision, and for the rule as it is.
import { describe, expect, it } from 'vitest';
import { newId } from '../../../src/domain/id.ts';
import type { Database } from '../../../src/store/db/database.ts';
import { build } from '../../../src/store/db/sql.ts';
import { nextReportCounts, storeReportCounts } from '../../../src/store/ledger/call-follower.ts';
import { getRule, insertRule, type RuleRecord, updateRule } from '../../../src/store/rules/rules.ts';
import { insertCall } from '../../support/stored-calls.ts';
import { newDecision, START, storeWithTenant } from '../fixture.ts';

const compile = (): string => '{"enforce":{}}';
const MODELS = { models: ['large'] };

async function reporting() {
  const { store, tenant } = await storeWithTenant();
  const { organizationId, projectId, keyId, memberId } = tenant;
  const whose = { organizationId, projectId, keyId, memberId };
  const add = (mode: 'report' | 'enforce') =>
    store.write((db, now) => {
      const rule = { id: newId('rule'), ruleType: 'deny_models', ruleValue: MODELS, status: 'active' } as const;
      return insertRule(db, organizationId, keyId, { ...rule, mode, description: null }, compile, now);
    });
  const change = (rule: RuleRecord, changes: Parameters<typeof updateRule>[4]) =>
    store.write((db, now) => updateRule(db, organizationId, keyId, rule.id, changes, compile, now));
  let made = 0;
  /** Calls of which the shadow names these rules, by a revision. */
  const call = (ruleRevision: number, would_deny: string[], would_allow: string[] = [], count = 1) =>
    store.write((db) => {
      const shadowJson = JSON.stringify({ permitted: [], would_deny, would_allow });
      for (let place = 0; place < count; place += 1) {
        made += 1;
        insertCall(db, START + made * 1000, whose, newDecision({ ruleRevision, shadowJson }));
      }
    });
  const count = async (): Promise<void> => {
    for (let counts = await store.read(nextReportCounts); counts !== undefined; ) {
      const next = counts;
      await store.write((db) => storeReportCounts(db, next));
      await store.write((db) => storeReportCounts(db, next)); // It adds nothing.
      counts = await store.read(nextReportCounts);
    }
  };
  const reports = (rule: RuleRecord) => {
    const shown = (db: Database) => {
      const { wouldDeny, wouldAllow, lastSeenAt } = getRule(db, organizationId, keyId, rule.id);
      return [wouldDeny, wouldAllow, lastSeenAt];
    };
    return store.read(shown);
  };
  return { store, add, change, call, count, reports, keyId, organizationId };
}

const revisionOf = ({ reportRevision }: RuleRecord): number => reportRevision ?? Number.NaN;

describe('what a rule in mode report would have changed', () => {
  it('is counted once for each decision that names it, with the time of the last', async () => {
    const { add, call, count, reports } = await reporting();
    const [one, other] = [await add('report'), await add('report')];
    const revision = revisionOf(other);
    await call(revision, [one.id, other.id], [], 3);
    await call(revision, [], [one.id]);
    await call(revision, []);
    await count();
    await count();
    expect([await reports(one), await reports(other)]).toEqual([
      [3, 1, START + 4000],
      [3, 0, START + 3000],
    ]);
    await call(revision, [other.id]);
    await count();
    expect([await reports(one), await reports(other)]).toEqual([
      [3, 1, START + 4000],
      [4, 0, START + 6000],
    ]);
  });

  it('begins again when it says something else, and not with another description', async () => {
    const { add, change, call, count, reports } = await reporting();
    const rule = await add('report');
    await call(revisionOf(rule), [rule.id]);
    await count();
    const described = await change(rule, { description: 'large ones' });
    expect(await reports(described)).toEqual([1, 0, START + 1000]);
    expect(described.reportRevision).toBe(rule.reportRevision);

    const changed = await change(rule, { ruleValue: { models: ['huge'] } });
    expect([await reports(rule), revisionOf(changed) - revisionOf(rule)]).toEqual([[0, 0, null], 2]);
    await call(revisionOf(rule), [rule.id]); // Decided before the change, and counted after it.
    await call(revisionOf(changed), [], [rule.id]);
    await count();
    expect(await reports(rule)).toEqual([0, 1, START + 3000]);

    const enforced = await change(rule, { mode: 'enforce' });
    expect(enforced).toMatchObject({ reportsSince: null, reportRevision: null, wouldDeny: 0, wouldAllow: 0 });
    await call(revisionOf(changed), [rule.id]);
    await count();
    expect(await reports(rule)).toEqual([0, 0, null]);
    const inactive = await change(rule, { mode: 'report', status: 'inactive' });
    expect(inactive.reportsSince).toBeNull();
    expect((await change(rule, { status: 'active' })).reportsSince).toBe(START);
  });

  it('is none of a rule that is enforced', async () => {
    const { add, call, count, reports } = await reporting();
    const rule = await add('enforce');
    await call(99, [rule.id]);
    await count();
    expect(await reports(rule)).toEqual([0, 0, null]);
  });

  it('is counted of more calls than fit into one piece', async () => {
    const { store, add, call, count, reports } = await reporting();
    const rule = await add('report');
    await call(revisionOf(rule), [rule.id], [], 17_000);
    expect((await store.read(nextReportCounts))?.isBehind).toBe(true);
    await count();
    expect((await reports(rule))[0]).toBe(17_000);
    const counted = await store.read((db) => db.get(build.selectFrom('report_mark').select('counted')));
    const last = await store.read((db) =>
      db.get(build.selectFrom('ledger').select(({ fn }) => fn.max('number').as('n'))),
    );
    expect(counted?.counted).toBe(last?.n);
  });
});
