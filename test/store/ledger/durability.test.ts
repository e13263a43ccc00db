import { setTimeout as delay } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { build } from '../../../src/store/db/sql.ts';
import { createStore } from '../../../src/store/store.ts';
import { getKey } from '../../../src/store/tenants/key-records.ts';
import { getOrganization, updateOrganization } from '../../../src/store/tenants/tenants.ts';
import { startChild } from '../child.ts';
import { storeWithTenant } from '../fixture.ts';

test('a settlement that was acknowledged survives kill -9, and the sums of its key agree with the rows', async () => {
  const { store, clock, path, tenant } = await storeWithTenant();
  store.close();
  const { organizationId, projectId, keyId, memberId } = tenant;
  const child = await startChild('settle-calls.ts', [path, organizationId, projectId, keyId, memberId]);
  const acknowledged: string[] = [];
  const collected = (async () => {
    for (let id = await child.line(); id.startsWith('call_'); id = await child.line()) acknowledged.push(id);
  })();
  while (acknowledged.length < 200) await delay(5);
  await child.kill();
  await collected;

  const next = createStore({ path, clock });
  try {
    await next.recoverOpenCalls();
    const rows = await next.read((db) => db.all(build.selectFrom('calls').select(['id', 'state', 'cost'])));
    const settled = rows.filter(({ state }) => state === 'settled');
    const present = new Set(settled.map(({ id }) => id));
    expect(acknowledged.filter((id) => !present.has(id))).toEqual([]);
    expect(new Set(rows.map(({ state }) => state)).isSubsetOf(new Set(['settled', 'recovered']))).toBe(true);
    expect(await next.read((db) => getKey(db, organizationId, keyId).usage)).toBe(BigInt(settled.length));
  } finally {
    next.close();
  }
});

test("another process's write is seen by the very next read", async () => {
  const { store, path, tenant } = await storeWithTenant();
  expect(await store.findKeyByHash(tenant.secretHash)).toMatchObject({ plan: 'enterprise', disabledAt: null });
  const child = await startChild('disable-key.ts', [path, tenant.organizationId, tenant.keyId]);
  expect(await child.line()).toBe('disabled');
  expect(await store.findKeyByHash(tenant.secretHash)).toMatchObject({ disabledAt: 42 });
  await store.write((db, now) => updateOrganization(db, tenant.organizationId, { plan: 'free' }, now));
  expect(await store.findKeyByHash(tenant.secretHash)).toMatchObject({ plan: 'free', disabledAt: 42 });
});

test('closing commits what waits', async () => {
  const { store, clock, path, tenant } = await storeWithTenant();
  const waiting = store.write((db, now) => updateOrganization(db, tenant.organizationId, { name: 'Last' }, now));
  store.close();
  expect((await waiting).name).toBe('Last');
  const next = createStore({ path, clock });
  onTestFinished(() => next.close());
  expect(await next.read((db) => getOrganization(db, tenant.organizationId).name)).toBe('Last');
});
