import { expect, test } from 'vitest';
import { newId } from '../../src/domain/id.ts';
import { deleteProviderKey, insertProviderKey, listProviderKeys } from '../../src/store/provider-keys.ts';
import { build } from '../../src/store/sql.ts';
import { addTenant, START, storeWithTenant, type Tenant } from './fixture.ts';

const newProviderKey = (tenant: Tenant, position: number) => ({
  id: newId('prov'),
  organizationId: tenant.organizationId,
  projectId: null,
  providerId: 'openai',
  label: 'Ours',
  ciphertext: 'sealed',
  encryptionKeyId: 'e1',
  mask: 'sk-…wxyz',
  baseUrl: null,
  position,
  status: 'active' as const,
});

test('credentials are listed in the order in which they are tried, of one organization only', async () => {
  const { store, tenant } = await storeWithTenant();
  const other = await addTenant(store);
  const keys = [2, 1].map((position) => newProviderKey(tenant, position));
  await store.write((db, now) => {
    for (const key of [...keys, newProviderKey(other, 0)]) insertProviderKey(db, key, now);
  });
  const times = { createdAt: START, updatedAt: START };
  expect(await store.read((db) => listProviderKeys(db, tenant.organizationId))).toEqual(
    keys.toReversed().map((key) => ({ ...key, ...times })),
  );
});

test('a deleted credential is not listed, is 404, and its secret is forgotten', async () => {
  const { store, tenant } = await storeWithTenant();
  const key = newProviderKey(tenant, 0);
  await store.write((db, now) => insertProviderKey(db, key, now));
  const remove = () => store.write((db, now) => deleteProviderKey(db, tenant.organizationId, key.id, now));
  await remove();
  await expect(remove()).rejects.toMatchObject({ status: 404, code: 'not_found' });
  expect(await store.read((db) => listProviderKeys(db, tenant.organizationId))).toEqual([]);
  expect(await store.read((db) => db.all(build.selectFrom('provider_keys').select('ciphertext')))).toEqual([
    { ciphertext: '' },
  ]);
});
