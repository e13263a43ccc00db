import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openDatabase } from '../../../src/store/db/database.ts';
import { Freshness, FreshReads } from '../../../src/store/db/freshness.ts';

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
    other.connection.exec("INSERT INTO organizations VALUES ('org_1', 'One', 'enterprise', 0, 1, 1)");
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

  it('is looked after once in a turn of the event loop, and once more before each write', async () => {
    const db = openDatabase(path);
    const other = openDatabase(path);
    const freshness = new Freshness(db.connection);
    const insert = (id: string) =>
      other.connection.exec(`INSERT INTO organizations VALUES ('${id}', 'One', 'enterprise', 0, 1, 1)`);
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
      other.connection.exec(`INSERT INTO organizations VALUES ('${id}', 'One', 'enterprise', 0, 1, 1)`);
      await nextTurn();
      if (id === 'org_2') freshness.epoch(); // Someone else looks meanwhile.
      reads.set('key', 'read before', epoch);
      expect(reads.get('key')).toBeUndefined();
    }
    other.close();
    db.close();
  });
});
