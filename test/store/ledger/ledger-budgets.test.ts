// Budgets of members, projects and the organization: what the keys under them hold back and spend together.
import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import { newId } from '../../../src/domain/id.ts';
import { type BudgetScope, type NewLimits, runningPeriod } from '../../../src/domain/limits.ts';
import type { Database } from '../../../src/store/db/database.ts';
import { build } from '../../../src/store/db/sql.ts';
import type { OpenCall } from '../../../src/store/ledger/ledger.ts';
import { createStore, type Store } from '../../../src/store/store.ts';
import { type BudgetOwner, getBudget, setBudget } from '../../../src/store/tenants/budget-records.ts';
import { findPlaygroundKey, insertKey, type NewKey } from '../../../src/store/tenants/key-records.ts';
import { insertMember, removeMember } from '../../../src/store/tenants/member-records.ts';
import { deleteProject, insertProject } from '../../../src/store/tenants/tenants.ts';
import { costing, newCall, newDecision, newKey, START, settlement, storeWithTenant, type Tenant } from '../fixture.ts';

const HOUR = 3_600_000;
const allTime = (usageLimit: bigint): NewLimits => ({ usageLimit, period: null });
const hourly = (limit: bigint): NewLimits => ({ usageLimit: null, period: { limit, value: 1, unit: 'hour' } });
const NONE: NewLimits = { usageLimit: null, period: null };

type World = Awaited<ReturnType<typeof world>>;

/** Two members and two projects with a key each: `own` and `other` share nothing but the organization. */
async function world() {
  const opened = await storeWithTenant();
  const { store, tenant } = opened;
  const { organizationId } = tenant;
  const [memberId, projectId] = [newId('mem'), newId('proj')];
  const keys = {
    own: newKey(tenant),
    sibling: newKey(tenant),
    other: newKey(tenant, { createdBy: memberId, projectId }),
  };
  await store.write((db, now) => {
    insertMember(
      db,
      { id: memberId, organizationId, email: 'other@acme.test', name: null, role: 'developer', passwordHash: null },
      now,
    );
    insertProject(db, { id: projectId, organizationId, name: 'Other' }, now);
    for (const key of Object.values(keys)) insertKey(db, key, now);
  });
  return { ...opened, keys };
}

const subjectOf = (scope: BudgetScope, tenant: Tenant): string =>
  ({ member: tenant.memberId, project: tenant.projectId, organization: tenant.organizationId })[scope];

const budgetOwner = (scope: BudgetScope, tenant: Tenant): BudgetOwner => ({
  organizationId: tenant.organizationId,
  scope,
  subjectId: subjectOf(scope, tenant),
});

const limit = ({ store, tenant }: World, scope: BudgetScope, limits: NewLimits) =>
  store.write((db) => setBudget(db, budgetOwner(scope, tenant), limits));

type Callable = Pick<NewKey, 'id' | 'projectId' | 'createdBy'>;

const open = ({ store, tenant }: Pick<World, 'store' | 'tenant'>, key: Callable, cost: bigint) => {
  const { id: keyId, projectId, createdBy: memberId } = key;
  return store.openCall(newCall(tenant, { keyId, projectId, memberId }), newDecision(), costing(cost));
};

const spend = async (of: World, key: Callable, cost: bigint) =>
  of.store.settleCall(await open(of, key, cost), settlement({ cost }));

const budget = ({ store, tenant }: World, scope: BudgetScope) =>
  store.read((db) => getBudget(db, budgetOwner(scope, tenant)));

describe.each([
  ['member', 'the owner of this API key', 'their'],
  ['project', 'the project of this API key', 'its'],
  ['organization', 'the organization of this API key', 'its'],
] as const)('the budget of a %s', (scope, holder, its) => {
  test('is shared by its keys: what one holds back or has spent, another has not left, and the error says whose budget it is', async () => {
    const it = await world();
    await limit(it, scope, allTime(1000n));
    await spend(it, it.keys.own, 500n);
    await open(it, it.keys.own, 300n);

    await expect(open(it, it.keys.sibling, 201n)).rejects.toMatchObject({
      status: 429,
      code: 'budget_reserved',
      message:
        `This call may cost 0.000000000201 USD. The all-time budget of ${holder} leaves 0.0000000005 USD, of which ` +
        '0.0000000003 USD are held back for calls that are still running. Try again when they have ended.',
    });
    await expect(open(it, it.keys.sibling, 501n)).rejects.toMatchObject({
      status: 401,
      code: 'usage_limit_reached',
      message: `This call may cost 0.000000000501 USD, and the all-time budget of ${holder} leaves 0.0000000005 USD.`,
    });
    await spend(it, it.keys.sibling, 200n);
    expect(await budget(it, scope)).toMatchObject({ usage: 700n, reserved: 300n });
  });

  test('that is spent refuses every call, whatever its key could spend', async () => {
    const it = await world();
    await limit(it, scope, hourly(100n));
    await spend(it, it.keys.own, 100n);

    const title = holder.charAt(0).toUpperCase() + holder.slice(1);
    await expect(open(it, it.keys.sibling, 0n)).rejects.toMatchObject({
      status: 401,
      code: 'usage_limit_reached',
      message: `${title} has reached ${its} recurring budget of 0.0000000001 USD. It resets at 2026-03-01T13:00:00.000Z.`,
    });
    it.clock.advance(HOUR);
    await spend(it, it.keys.sibling, 100n);
    expect(await budget(it, scope)).toMatchObject({ usage: 200n, currentPeriodUsage: 100n });
  });

  test('counts in its all-time limit what was spent and held back before it was set, by deleted keys too', async () => {
    const it = await world();
    await spend(it, it.keys.own, 400n);
    const running = await open(it, it.keys.own, 0n);
    await it.store.write((db, now) =>
      db.run(build.updateTable('keys').set({ deletedAt: now }).where('id', '=', it.keys.own.id)),
    );

    await limit(it, scope, allTime(1000n));

    expect(await budget(it, scope)).toMatchObject({ usage: 400n, reserved: 0n });
    await it.store.settleCall(running, settlement({ cost: 50n }));
    expect(await budget(it, scope)).toMatchObject({ usage: 450n, reserved: 0n });
    await expect(open(it, it.keys.sibling, 551n)).rejects.toMatchObject({ status: 401 });
  });

  test('that was removed and set again knows what calls hold back that run since', async () => {
    const it = await world();
    await limit(it, scope, allTime(1000n));
    const running = await open(it, it.keys.own, 600n);
    await limit(it, scope, NONE);
    await limit(it, scope, allTime(1000n));

    expect(await budget(it, scope)).toMatchObject({ usage: 0n, reserved: 600n });
    await it.store.settleCall(running, settlement({ cost: 100n }));
    expect(await budget(it, scope)).toMatchObject({ usage: 100n, reserved: 0n });
  });
});

test('a budget binds nobody else', async () => {
  const it = await world();
  await limit(it, 'member', allTime(0n));
  await limit(it, 'project', allTime(0n));

  expect((await open(it, it.keys.other, 100n)).reservation).toBeUndefined();
});

test('the budget of a member covers their playground key', async () => {
  const it = await world();
  const { organizationId, memberId, projectId } = it.tenant;
  const playground = await it.store.read((db) => findPlaygroundKey(db, organizationId, memberId, projectId));
  if (playground === undefined) throw new Error('a member has a playground key');
  await limit(it, 'member', allTime(100n));
  await spend(it, playground, 60n);

  expect(await budget(it, 'member')).toMatchObject({ usage: 60n });
  await expect(open(it, playground, 41n)).rejects.toMatchObject({ code: 'usage_limit_reached' });
});

test('a call must fit its key and all budgets: the tightest decides', async () => {
  const it = await world();
  const key = newKey(it.tenant, { usageLimit: 400n });
  await it.store.write((db, now) => insertKey(db, key, now));
  await limit(it, 'organization', allTime(300n));
  await limit(it, 'project', allTime(200n));
  await limit(it, 'member', allTime(500n));

  await expect(open(it, key, 201n)).rejects.toThrow(/all-time budget of the project .* leaves 0\.0000000002 USD/);
  await limit(it, 'project', NONE);
  await expect(open(it, key, 301n)).rejects.toThrow(/all-time budget of the organization .* leaves 0\.0000000003 USD/);
  await limit(it, 'organization', NONE);
  await expect(open(it, key, 401n)).rejects.toThrow(/all-time usage limit of this API key leaves 0\.0000000004 USD/);
  await limit(it, 'member', NONE);
  expect((await open(it, key, 400n)).reservation).toMatchObject({ amount: 400n, maxOutputTokens: null });
});

test('a new budget asks a busy key from the very next call on, and a removed one no longer', async () => {
  const it = await world();
  await open(it, it.keys.own, 100n);
  await limit(it, 'organization', allTime(50n));
  await expect(open(it, it.keys.own, 51n)).rejects.toMatchObject({ code: 'usage_limit_reached' });
  await limit(it, 'organization', NONE);
  expect((await open(it, it.keys.own, 51n)).reservation).toBeUndefined();
});

test('each budget has windows of its own: a call that outlives one settles into none', async () => {
  const it = await world();
  await limit(it, 'organization', hourly(100n));
  const slow = await open(it, it.keys.own, 100n);
  it.clock.advance(HOUR / 2);
  await limit(it, 'member', { usageLimit: null, period: { limit: 500n, value: 2, unit: 'hour' } });
  it.clock.advance(HOUR / 2);
  const next = await open(it, it.keys.sibling, 100n);

  await it.store.settleCall(slow, settlement({ cost: 90n }));
  await it.store.settleCall(next, settlement({ cost: 70n }));

  expect(next.windows).toEqual({
    periodStartedAt: null,
    memberPeriodStartedAt: START + HOUR,
    projectPeriodStartedAt: null,
    organizationPeriodStartedAt: START + HOUR,
    sharedPeriodStartedAt: null,
  });
  expect(await budget(it, 'organization')).toMatchObject({
    usage: 160n,
    currentPeriodUsage: 70n,
    currentPeriodReserved: 0n,
  });
  expect(await budget(it, 'member')).toMatchObject({ usage: 160n, currentPeriodUsage: 70n, currentPeriodReserved: 0n });
});

test('what a crash left open is booked to the budgets at its reservation, in their windows', async () => {
  const it = await world();
  for (const of of ['member', 'project', 'organization'] as const) await limit(it, of, hourly(100n));
  await open(it, it.keys.own, 70n);
  const next = createStore({ path: it.path, clock: it.clock });
  onTestFinished(() => next.close());

  expect(await next.recoverOpenCalls()).toBe(1);
  for (const of of ['member', 'project', 'organization'] as const) {
    expect(await budget(it, of)).toMatchObject({
      usage: 70n,
      reserved: 0n,
      currentPeriodUsage: 70n,
      currentPeriodReserved: 0n,
    });
  }
});

test('a budget goes with its member or project', async () => {
  const it = await world();
  const { memberId, projectId, organizationId } = it.tenant;
  await limit(it, 'member', allTime(1n));
  await limit(it, 'project', allTime(1n));
  await it.store.write((db, now) => {
    removeMember(db, organizationId, memberId, now);
    deleteProject(db, organizationId, projectId, now);
  });

  expect(await it.store.read((db) => db.all(build.selectFrom('budgets').selectAll()))).toEqual([]);
});

type Step =
  | { readonly kind: 'open'; readonly key: keyof World['keys']; readonly cost: bigint; readonly calls: number }
  | { readonly kind: 'end'; readonly which: number; readonly part: number; readonly released: boolean }
  | { readonly kind: 'wait'; readonly minutes: number }
  | { readonly kind: 'lift'; readonly scope: BudgetScope }
  | { readonly kind: 'crash' };

const scope = fc.constantFrom<BudgetScope>('member', 'project', 'organization');
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('open'),
      key: fc.constantFrom('own', 'sibling', 'other'),
      cost: fc.bigInt(0n, 400n),
      calls: fc.integer({ min: 1, max: 4 }),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('end'),
      which: fc.nat(),
      part: fc.double({ min: 0, max: 1, noNaN: true }),
      released: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('wait'), minutes: fc.integer({ min: 1, max: 45 }) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('lift'), scope }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('crash') }) },
);

const COLUMNS = {
  member: ['memberId', 'memberPeriodStartedAt'],
  project: ['projectId', 'projectPeriodStartedAt'],
  organization: ['organizationId', 'organizationPeriodStartedAt'],
} as const;

/** A budget's sums are those of the rows; while `strict`, it is within its limits. */
function audit(db: Database, owner: BudgetOwner, now: number, strict: boolean): void {
  const kept = getBudget(db, owner);
  const [subject, window] = COLUMNS[owner.scope];
  const calls = db.all(build.selectFrom('calls').selectAll()).filter((row) => row[subject] === owner.subjectId);
  const inWindow = calls.filter((row) => row[window] !== null && row[window] === kept.currentPeriodStartedAt);
  const cost = (of: typeof calls) => of.reduce((sum, row) => sum + row.cost, 0n);
  const held = (of: typeof calls) =>
    of.filter(({ state }) => state === 'open').reduce((sum, row) => sum + row.reservation, 0n);
  expect(kept).toMatchObject({
    usage: cost(calls),
    reserved: held(calls),
    currentPeriodUsage: cost(inWindow),
    currentPeriodReserved: held(inWindow),
  });
  if (!strict) return;
  expect(kept.usageLimit === null || kept.usage + kept.reserved <= kept.usageLimit).toBe(true);
  const period = runningPeriod(kept, now);
  if (period === undefined || kept.periodUsageLimit === null) return;
  expect(period.usage + kept.currentPeriodReserved <= kept.periodUsageLimit).toBe(true);
}

async function play(it: World, steps: readonly Step[], limits: Readonly<Record<BudgetScope, NewLimits>>) {
  const { clock, tenant, keys, path } = it;
  let store: Store = it.store;
  let calls: OpenCall[] = [];
  const lifted = new Set<BudgetScope>();
  for (const each of steps) {
    if (each.kind === 'wait') clock.advance(each.minutes * 60_000);
    if (each.kind === 'lift') {
      const isLifted = lifted.has(each.scope);
      lifted.add(each.scope);
      const wanted = isLifted ? limits[each.scope] : NONE;
      await store.write((db) => setBudget(db, budgetOwner(each.scope, tenant), wanted));
    }
    if (each.kind === 'open') {
      const opened = Array.from({ length: each.calls }, () => open({ store, tenant }, keys[each.key], each.cost));
      for (const result of await Promise.allSettled(opened)) {
        if (result.status === 'fulfilled') calls.push(result.value);
      }
    }
    if (each.kind === 'end' && calls.length > 0) {
      const [call] = calls.splice(each.which % calls.length, 1);
      const cost = BigInt(Math.floor(Number(call?.reservation?.amount ?? 100n) * each.part));
      const end = each.released ? settlement({ state: 'released', cost: 0n }) : settlement({ cost });
      if (call !== undefined) await Promise.all([store.settleCall(call, end), store.settleCall(call, end)]);
    }
    if (each.kind === 'crash') {
      store.close();
      store = createStore({ path, clock });
      expect(await store.recoverOpenCalls()).toBe(calls.length);
      calls = [];
    }
    await store.read((db) => {
      for (const of of ['member', 'project', 'organization'] as const) {
        audit(db, budgetOwner(of, tenant), clock.now(), lifted.size === 0);
      }
    });
  }
  store.close();
}

test('no budget is ever a pico-dollar over a limit, and its sums are those of its rows, whatever becomes of the calls', async () => {
  const amount = (max: bigint) => fc.bigInt(1n, max);
  await fc.assert(
    fc.asyncProperty(
      amount(3000n),
      amount(1000n),
      amount(3000n),
      fc.array(step, { maxLength: 40 }),
      async (total, window, project, steps) => {
        const it = await world();
        const limits = {
          member: { usageLimit: total, period: { limit: window, value: 1, unit: 'hour' } },
          project: allTime(project),
          organization: hourly(2n * window),
        } as const;
        for (const of of ['member', 'project', 'organization'] as const) await limit(it, of, limits[of]);
        await play(it, steps, limits);
      },
    ),
    { numRuns: 40 },
  );
});
