import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { createUsageReporter, readUsageRequest } from '../../../src/admin/usage/usage-query.ts';
import { databasePath } from '../../../src/store/db/data-dir.ts';
import { type Database, openDatabase } from '../../../src/store/db/database.ts';
import { DatabaseThread } from '../../../src/store/db/database-thread.ts';
import { owner, seedTenants, startMs } from '../tenants.ts';

let folder: string;
let db: Database;
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'portcullis-'));
  db = openDatabase(databasePath(folder), { create: true });
  seedTenants(db);
});
afterAll(() => {
  db.close();
  rmSync(folder, { recursive: true });
});

const reporter = (limitMs: number) => {
  const data = { databasePath: databasePath(folder), decisionFile: undefined };
  const thread = new DatabaseThread({ job: 'readDatabase', data });
  onTestFinished(() => thread.close());
  return createUsageReporter(thread, limitMs);
};

it('ends a report that takes too long, and does the next', async () => {
  const slow = reporter(0);
  await expect(slow.report(readUsageRequest(db, owner, {}, startMs))).rejects.toMatchObject({
    status: 504,
    code: 'report_timeout',
  });
});

it('tells what the request itself is refused for', async () => {
  const own = reporter(30_000);
  const request = { ...readUsageRequest(db, owner, {}, startMs), cursor: 'nonsense' };
  await expect(own.report(request)).rejects.toMatchObject({ status: 400, param: '/cursor' });
  expect((await own.report(readUsageRequest(db, owner, {}, startMs))).nextCursor).toBeNull();
});
