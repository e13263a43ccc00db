// The thread that moves the write-ahead log into the database beside the serving connection.
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Checkpointer, createCheckpointer } from '../../src/store/checkpointer.ts';
import { type Database, openDatabase } from '../../src/store/database.ts';

let folder: string;
let db: Database;
let checkpointer: Checkpointer;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'portcullis-'));
  const path = join(folder, 'x.sqlite');
  db = openDatabase(path, { create: true });
  db.connection.pragma('wal_checkpoint(TRUNCATE)');
  db.connection.pragma('wal_autocheckpoint = 0'); // So that nobody but the thread moves a page.
  checkpointer = createCheckpointer(path);
});

afterEach(async () => {
  await checkpointer.close();
  db.close();
  rmSync(folder, { recursive: true });
});

/** Commits documents of a page each, telling the checkpointer as the store does. */
function commit(transactions: number, pagesOfEach: number): void {
  const insert = db.connection.prepare('INSERT INTO data_documents VALUES (?, ?, 0)');
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

  it('is left alone while it is short', async () => {
    commit(32, 10);
    await sleep(300);

    expect(log()).toEqual({ busy: 0, log: expect.any(Number), checkpointed: 0 });
  });
});
