import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Freshness, FreshReads, openDatabase } from '../../../src/store/db/database.ts';

describe('what was read once', () => {
  let folder: string;
  let path: string;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'portcullis-'));
    path = join(folder, 'x.sqlite');
    openDatabase(path, { create: true }).close();
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  it('is remembered while nothing changes, forgotten when another connection commits or this one says that it writes', async () => {
    const db = openDatabase(path);
    const other = openDatabase(path);
    const freshness = new Freshness(db.connection);
    const reads = new FreshReads<string>(freshness, 10);
    const seen: (string | undefined)[] = [];
    reads.set('key', 'first', freshness.lastEpoch());
    seen.push(reads.get('key'), reads.get('another key'));
    other.connection.exec(
      "INSERT INTO organizations (id, name, plan, ruleRevision, createdAt, updatedAt) VALUES ('org_1', 'One', 'enterprise', 0, 1, 1)",
    );
    await nextTurn();
    seen.push(reads.get('key'));
    reads.set('key', 'second', freshness.lastEpoch());
    seen.push(reads.get('key'));
    freshness.changed();
    seen.push(reads.get('key'));
    expect(seen).toEqual(['first', undefined, undefined, 'second', undefined]);
    other.close();
    db.close();
  });

  it('stays fresh while calls are booked, and no longer when anything else changes of what is remembered', async () => {
    const db = openDatabase(path);
    const other = openDatabase(path);
    other.connection.exec(`
      INSERT INTO organizations (id, name, plan, ruleRevision, createdAt, updatedAt) VALUES ('org_1', 'One', 'enterprise', 0, 1, 1);
      INSERT INTO projects (id, organizationId, name, createdAt, updatedAt) VALUES ('proj_1', 'org_1', 'One', 1, 1);
      INSERT INTO members (id, organizationId, email, role, createdAt, updatedAt) VALUES ('mem_1', 'org_1', 'a@b.c', 'owner', 1, 1);
      INSERT INTO keys (id, organizationId, projectId, createdBy, description, secretHash, pepperId, mask, createdAt, updatedAt)
        VALUES ('key_1', 'org_1', 'proj_1', 'mem_1', 'One', 'hash', 'pepper', 'mask', 1, 1);
      INSERT INTO budgets (subjectId, organizationId, scope, usageLimit, usage, reserved) VALUES ('org_1', 'org_1', 'organization', 1, 0, 0);
      INSERT INTO custom_providers (id, organizationId, name, wire, baseUrl, keyless, createdAt, updatedAt)
        VALUES ('prov_1', 'org_1', 'one', 'openai', 'u', 1, 1, 1);
      INSERT INTO provider_keys (id, organizationId, provider, label, ciphertext, encryptionKeyId, mask, position, status, createdAt, updatedAt)
        VALUES ('pk_1', 'org_1', 'one', 'One', 'c', 'e', 'm', 1, 'active', 1, 1);
    `);
    const freshness = new Freshness(db.connection);
    const stale = async (change: string): Promise<boolean> => {
      const before = freshness.epoch();
      other.connection.exec(change);
      await nextTurn();
      return freshness.epoch() !== before;
    };
    const booked: string[] = [];
    for (const table of [
      'organizations',
      'projects',
      'members',
      'keys',
      'budgets',
      'custom_providers',
      'provider_keys',
    ]) {
      const columns = other.connection
        .prepare<[string], string>('SELECT name FROM pragma_table_info(?)')
        .pluck()
        .all(table);
      for (const column of columns) {
        if (!(await stale(`UPDATE ${table} SET "${column}" = "${column}"`))) booked.push(`${table}.${column}`);
      }
    }
    const sums = ['usage', 'reserved', 'currentPeriodUsage', 'currentPeriodReserved', 'currentPeriodStartedAt'];
    expect(booked.sort()).toEqual(
      [
        ...sums.map((column) => `keys.${column}`),
        'keys.lastUsedAt',
        ...sums.map((column) => `budgets.${column}`),
      ].sort(),
    );
    expect(await stale('DELETE FROM provider_keys; DELETE FROM custom_providers; DELETE FROM budgets')).toBe(true);
    other.close();
    db.close();
  });

  it('is looked after once in a turn of the event loop, and once more before each write', async () => {
    const db = openDatabase(path);
    const other = openDatabase(path);
    const freshness = new Freshness(db.connection);
    const insert = (id: string) =>
      other.connection.exec(
        `INSERT INTO organizations (id, name, plan, ruleRevision, createdAt, updatedAt) VALUES ('${id}', 'One', 'enterprise', 0, 1, 1)`,
      );
    const epochs = [freshness.epoch()];
    insert('org_1');
    epochs.push(freshness.epoch());
    epochs.push(db.transaction(() => freshness.during(() => freshness.epoch())));
    insert('org_2');
    await nextTurn();
    epochs.push(freshness.epoch());
    expect(epochs).toEqual([0, 0, 1, 2]);
    other.close();
    db.close();
  });

  it('is not taken for fresh when another connection commits between the read and its being remembered', async () => {
    const db = openDatabase(path);
    const other = openDatabase(path);
    const freshness = new Freshness(db.connection);
    const reads = new FreshReads<string>(freshness, 10);
    for (const id of ['org_1', 'org_2']) {
      expect(reads.get('key')).toBeUndefined();
      const epoch = freshness.lastEpoch();
      other.connection.exec(
        `INSERT INTO organizations (id, name, plan, ruleRevision, createdAt, updatedAt) VALUES ('${id}', 'One', 'enterprise', 0, 1, 1)`,
      );
      await nextTurn();
      if (id === 'org_2') freshness.epoch(); // Someone else looks meanwhile.
      reads.set('key', 'read before', epoch);
      expect(reads.get('key')).toBeUndefined();
    }
    other.close();
    db.close();
  });
});
