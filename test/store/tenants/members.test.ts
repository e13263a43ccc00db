import { describe, expect, test } from 'vitest';
import { newId } from '../../../src/domain/id.ts';
import { build } from '../../../src/store/db/sql.ts';
import {
  deleteMasterKey,
  findMasterKeyByHash,
  getMasterKey,
  insertMasterKey,
  listMasterKeys,
  touchMasterKey,
} from '../../../src/store/tenants/master-key-records.ts';
import {
  getMember,
  insertMember,
  listMembers,
  removeMember,
  updateMember,
} from '../../../src/store/tenants/member-records.ts';
import {
  getOrganization,
  getProject,
  insertProject,
  isEmpty,
  listProjects,
} from '../../../src/store/tenants/tenants.ts';
import { addTenant, START, storeWithTenant, type Tenant } from '../fixture.ts';

const missing = expect.objectContaining({ status: 404, code: 'not_found' });

const newMember = (tenant: Tenant, email: string) => ({
  id: newId('mem'),
  organizationId: tenant.organizationId,
  email,
  name: 'Ada',
  role: 'developer' as const,
  passwordHash: null,
});

const unlimited = { requestsPerMinute: null, tokensPerMinute: null };

describe('the first run', () => {
  test('creates organization, project, owner, master key and key', async () => {
    const { store, tenant } = await storeWithTenant();
    const { organizationId, projectId, memberId, masterKeyId } = tenant;
    const times = { createdAt: START, updatedAt: START };
    expect(
      await store.read((db) => [
        isEmpty(db),
        getOrganization(db, organizationId),
        getProject(db, organizationId, projectId),
        getMember(db, organizationId, memberId),
        getMasterKey(db, organizationId, masterKeyId),
      ]),
    ).toEqual([
      false,
      {
        id: organizationId,
        name: 'Acme',
        plan: 'enterprise',
        ruleRevision: 0,
        newKeyLimitsJson: null,
        ...unlimited,
        ...times,
      },
      {
        id: projectId,
        organizationId,
        name: 'Default',
        cachingEnabled: true,
        cacheDurationSeconds: 60,
        ...unlimited,
        ...times,
      },
      { id: memberId, organizationId, email: 'owner@acme.test', name: null, role: 'owner', ...unlimited, ...times },
      {
        id: masterKeyId,
        organizationId,
        memberId,
        description: 'First',
        mask: 'pcl_abcd…wxyz',
        lastUsedAt: null,
        ...times,
      },
    ]);
  });
});

describe('members', () => {
  test('are found by membership id and by e-mail in any case, in their organization only', async () => {
    const { store, tenant } = await storeWithTenant();
    const other = await addTenant(store);
    const member = newMember(tenant, 'Ada@Acme.test');
    await store.write((db, now) => insertMember(db, member, now));
    for (const name of [member.id, 'ada@acme.test', 'ADA@ACME.TEST']) {
      expect(await store.read((db) => getMember(db, tenant.organizationId, name))).toMatchObject({ id: member.id });
      await expect(store.read((db) => getMember(db, other.organizationId, name))).rejects.toEqual(missing);
    }
  });

  test('have an e-mail of their own, which is free again when they have left', async () => {
    const { store, tenant } = await storeWithTenant();
    const insert = () => store.write((db, now) => insertMember(db, newMember(tenant, 'ada@acme.test'), now));
    const first = await insert();
    await expect(insert()).rejects.toThrow('UNIQUE');
    await store.write((db, now) => removeMember(db, tenant.organizationId, first.id, now));
    const second = await insert();
    const listed = await store.read((db) => listMembers(db, tenant.organizationId, { limit: 10 }));
    expect(listed.items.map(({ id }) => id).sort()).toEqual([tenant.memberId, second.id].sort());
  });

  test('are changed in what is named; others and those who left are 404', async () => {
    const { store, tenant } = await storeWithTenant();
    const other = await addTenant(store);
    const member = await store.write((db, now) => insertMember(db, newMember(tenant, 'ada@acme.test'), now));
    const update = (organizationId: string) =>
      store.write((db, now) => updateMember(db, organizationId, member.id, { role: 'admin' }, now));
    expect(await update(tenant.organizationId)).toEqual({ ...member, role: 'admin' });
    await expect(update(other.organizationId)).rejects.toEqual(missing);
    await store.write((db, now) => removeMember(db, tenant.organizationId, member.id, now));
    await expect(update(tenant.organizationId)).rejects.toEqual(missing);
  });
});

describe('master keys', () => {
  test('act with the current role of the member who made them, and stop when they leave', async () => {
    const { store, tenant } = await storeWithTenant();
    const { organizationId, memberId, masterKeyId } = tenant;
    const find = () => store.read((db) => findMasterKeyByHash(db, `master-${tenant.secretHash}`));
    const credential = { masterKeyId, organizationId, memberId, lastUsedAt: null };
    expect(await find()).toEqual({ ...credential, role: 'owner' });
    await store.write((db, now) => updateMember(db, organizationId, memberId, { role: 'developer' }, now));
    expect(await find()).toEqual({ ...credential, role: 'developer' });
    await store.write((db, now) => removeMember(db, organizationId, memberId, now));
    expect(await find()).toBeUndefined();
  });

  test('show when they were last used', async () => {
    const { store, clock, tenant } = await storeWithTenant();
    clock.advance(1000);
    await store.write((db, now) => touchMasterKey(db, tenant.organizationId, tenant.masterKeyId, now));
    const key = await store.read((db) => getMasterKey(db, tenant.organizationId, tenant.masterKeyId));
    expect([key.lastUsedAt, key.updatedAt]).toEqual([START + 1000, START]);
  });

  test('that are deleted do not act, are not listed and are 404', async () => {
    const { store, tenant } = await storeWithTenant();
    const { organizationId, memberId, masterKeyId } = tenant;
    const second = { id: newId('mkey'), organizationId, memberId, description: 'Second' };
    await store.write((db, now) =>
      insertMasterKey(db, { ...second, secretHash: 'second', pepperId: 'pepper', mask: 'pclm_…' }, now),
    );
    const remove = () => store.write((db, now) => deleteMasterKey(db, organizationId, masterKeyId, now));
    await remove();
    await expect(remove()).rejects.toEqual(missing);
    expect(await store.read((db) => findMasterKeyByHash(db, `master-${tenant.secretHash}`))).toBeUndefined();
    const listed = await store.read((db) => listMasterKeys(db, organizationId, undefined, { limit: 10 }));
    expect(listed.items.map(({ id }) => id)).toEqual([second.id]);
  });
});

describe('projects', () => {
  test('are listed in their organization only', async () => {
    const { store, tenant } = await storeWithTenant();
    const other = await addTenant(store);
    const project = await store.write((db, now) =>
      insertProject(db, { id: newId('proj'), organizationId: other.organizationId, name: 'Second' }, now),
    );
    const listed = await store.read((db) => listProjects(db, other.organizationId, { limit: 10 }));
    expect(listed.items.map(({ id }) => id).sort()).toEqual([other.projectId, project.id].sort());
    await expect(store.read((db) => getProject(db, tenant.organizationId, project.id))).rejects.toEqual(missing);
  });

  test('keep the duration of their cache between 10 seconds and a year', async () => {
    const { store, tenant } = await storeWithTenant();
    for (const seconds of [9, 31_536_001]) {
      const write = store.write((db) =>
        db.run(
          build
            .updateTable('projects')
            .set({ cacheDurationSeconds: seconds })
            .where('organizationId', '=', tenant.organizationId),
        ),
      );
      await expect(write).rejects.toThrow('CHECK');
    }
  });
});
