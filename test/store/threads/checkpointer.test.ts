// The thread that moves the write-ahead log into the database, apart from the serving connection.
import { randomUUID } from 'node:crypto';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Checkpointer, createCheckpointer, type Database, openDatabase } from '../../../src/store/db/database.ts';

let folder: string;
let db: Database;
let checkpointer: Checkpointer;
let faults: unknown[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'portcullis-'));
  const path = join(folder, 'x.sqlite');
  db = openDatabase(path, { create: true });
  db.connection.pragma('wal_checkpoint(TRUNCATE)');
  db.connection.pragma('wal_autocheckpoint = 0'); // So that nobody but the thread moves a page.
  faults = [];
  checkpointer = createCheckpointer(path, (error) => faults.push(error));
});

afterEach(async () => {
  await checkpointer.close();
  db.close();
  rmSync(folder, { recursive: true });
});

/** Commits documents of a page each, telling the checkpointer as the store does. */
function commit(transactions: number, pagesOfEach: number): void {
  const insert = db.connection.prepare('INSERT INTO data_documents (digest, text, usedOn) VALUES (?, ?, 0)');
  for (let number = 0; number < transactions; number += 1) {
    db.transaction(() => {
      for (let page = 0; page < pagesOfEach; page += 1) insert.run(randomUUID(), 'x'.repeat(4000));
    });
    checkpointer.committed();
  }
}

const log = () => db.connection.prepare<[], { log: number; checkpointed: number }>('PRAGMA wal_checkpoint(NOOP)').get();

describe('the log of a busy server', () => {
  it('is moved into the database while the serving connection goes on', async () => {
    commit(15, 200);
    expect(log()).toEqual({ busy: 0, log: expect.any(Number), checkpointed: 0 });

    commit(1, 1);

    while (log()?.checkpointed === 0) await sleep(5);
    const pages = log()?.log;
    expect(log()).toEqual({ busy: 0, log: pages, checkpointed: pages });
  });

  it('is left alone until there is enough to move', async () => {
    commit(16, 200);
    while (log()?.checkpointed === 0) await sleep(5);
    commit(32, 10); // The log starts again; the thread, which runs by now, looks at it twice.
    await sleep(200);

    expect(log()).toEqual({ busy: 0, log: expect.any(Number), checkpointed: 0 });
  });
});

describe('a thread that cannot do its work', () => {
  it('is reported once, and not started again; nothing is made where there is no database', async () => {
    const nowhere = join(folder, 'none.sqlite');
    const other = createCheckpointer(nowhere, (error) => faults.push(error));
    for (let looks = 0; looks < 10; looks += 1) {
      for (let number = 0; number < 16; number += 1) other.committed();
      await sleep(20);
    }
    while (faults.length === 0) await sleep(5);
    for (let number = 0; number < 64; number += 1) other.committed();
    await sleep(100);
    await other.close();

    expect(faults).toEqual([expect.objectContaining({ message: expect.stringContaining(nowhere) })]);
    expect(existsSync(nowhere)).toBe(false);
  });

  it('is started by nobody after the end', async () => {
    await checkpointer.close();
    rmSync(join(folder, 'x.sqlite'));
    for (let number = 0; number < 64; number += 1) checkpointer.committed();
    await sleep(200);

    expect([faults, existsSync(join(folder, 'x.sqlite'))]).toEqual([[], false]);
  });
});
