import { join } from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { describe, expect, onTestFinished, test } from 'vitest';
import { invalidRequest } from '../../../src/domain/errors.ts';
import { openDatabase } from '../../../src/store/db/database.ts';
import { build } from '../../../src/store/db/sql.ts';
import { StoreUnavailable } from '../../../src/store/db/sqlite-file.ts';
import { GroupWriter } from '../../../src/store/store.ts';
import { insertOrganization, insertProject, listOrganizations } from '../../../src/store/tenants/tenants.ts';
import { temporaryDirectory } from '../fixture.ts';

function openWriter(options: { capacity?: number; busyTimeoutMs?: number } = {}) {
  const path = join(temporaryDirectory(), 'portcullis.sqlite');
  const db = openDatabase(path, { create: true, busyTimeoutMs: options.busyTimeoutMs ?? 250 });
  onTestFinished(() => db.close());
  const insert = (id: string) => () => insertOrganization(db, { id, name: id }, 0).id;
  return {
    path,
    db,
    insert,
    writer: new GroupWriter((work) => db.transaction(work), options.capacity),
    ids: () => listOrganizations(db).map(({ id }) => id),
  };
}

/** How each promise ended: its value, or its error. */
const outcomes = async (promises: readonly Promise<unknown>[]): Promise<unknown[]> =>
  (await Promise.allSettled(promises)).map((result) =>
    result.status === 'fulfilled'
      ? result.value
      : result.reason instanceof Error
        ? result.reason.message
        : result.reason,
  );

describe('the writer', () => {
  test('commits the writes of one turn together, in order, and answers each with its result', async () => {
    const { db, writer, insert, ids } = openWriter();
    const begun: boolean[] = [];
    const promises = ['org_c', 'org_a', 'org_b'].map((id) =>
      writer.enqueue(() => {
        begun.push(db.connection.inTransaction);
        return insert(id)();
      }),
    );
    expect(ids()).toEqual([]);
    expect(await outcomes(promises)).toEqual(['org_c', 'org_a', 'org_b']);
    expect([begun, ids()]).toEqual([
      [true, true, true],
      ['org_a', 'org_b', 'org_c'],
    ]);
  });

  test('acknowledges nothing before another connection can see it', async () => {
    const { path, writer, insert } = openWriter();
    const other = new BetterSqlite3(path, { readonly: true });
    onTestFinished(() => {
      other.close();
    });
    const count = other.prepare<[], number>('SELECT count(*) FROM organizations').pluck();
    const seen = await Promise.all(
      ['org_1', 'org_2', 'org_3'].map((id) => writer.enqueue(insert(id)).then(() => count.get())),
    );
    expect(seen).toEqual([3, 3, 3]);
  });

  test('keeps the failure of one write to itself', async () => {
    const { writer, insert, ids } = openWriter();
    const promises = [
      writer.enqueue(insert('org_1')),
      writer.enqueue(insert('org_1')),
      writer.enqueue(() => {
        insert('org_half')();
        throw invalidRequest('Half done.');
      }),
      writer.enqueue(insert('org_2')),
    ];
    expect(await outcomes(promises)).toEqual([
      'org_1',
      'UNIQUE constraint failed: organizations.id',
      'Half done.',
      'org_2',
    ]);
    expect(ids()).toEqual(['org_1', 'org_2']);
  });

  test('acknowledges nothing whose commit fails', async () => {
    const { db, writer, insert, ids } = openWriter();
    // A broken reference that SQLite looks for at the commit only.
    const broken = () => {
      db.connection.pragma('defer_foreign_keys = ON');
      insertProject(db, { id: 'proj_1', organizationId: 'org_missing', name: 'Broken' }, 0);
    };
    const promises = [writer.enqueue(insert('org_1')), writer.enqueue(broken)];
    expect(await outcomes(promises)).toEqual(['org_1', 'FOREIGN KEY constraint failed']);
    expect(ids()).toEqual(['org_1']);
    expect(db.get(build.selectFrom('projects').select('id'))).toBeUndefined();
  });

  test('refuses all that waits with StoreUnavailable while another process holds the lock, and recovers', async () => {
    const { path, writer, insert, ids } = openWriter({ busyTimeoutMs: 1 });
    const other = new BetterSqlite3(path);
    onTestFinished(() => {
      other.close();
    });
    other.exec('BEGIN IMMEDIATE');
    const refused = await Promise.allSettled([writer.enqueue(insert('org_1')), writer.enqueue(insert('org_2'))]);
    other.exec('COMMIT');
    for (const result of refused) {
      expect(result).toMatchObject({ status: 'rejected', reason: { status: 503, code: 'overloaded' } });
      expect(result.status === 'rejected' && result.reason).toBeInstanceOf(StoreUnavailable);
    }
    expect(await writer.enqueue(insert('org_3'))).toBe('org_3');
    expect(ids()).toEqual(['org_3']);
  });

  test('refuses with StoreUnavailable what a full disk cannot take, and lets smaller writes pass', async () => {
    const { db, writer, insert, ids } = openWriter();
    const pages = db.connection.pragma('page_count', { simple: true });
    db.connection.pragma(`max_page_count = ${String(pages)}`);
    const large = () =>
      db.run(build.insertInto('data_documents').values({ digest: 'd', text: 'x'.repeat(1e6), usedOn: 0 }));
    const [first, second] = await Promise.allSettled([writer.enqueue(insert('org_1')), writer.enqueue(large)]);
    expect(first).toEqual({ status: 'fulfilled', value: 'org_1' });
    expect(second).toMatchObject({ status: 'rejected', reason: { status: 503, headers: { 'retry-after': '1' } } });
    expect([ids(), db.connection.inTransaction]).toEqual([['org_1'], false]);
  });

  test('refuses more writes than its queue holds', async () => {
    const { writer, insert, ids } = openWriter({ capacity: 2 });
    const promises = ['org_1', 'org_2', 'org_3'].map((id) => writer.enqueue(insert(id)));
    await expect(promises[2]).rejects.toBeInstanceOf(StoreUnavailable);
    expect(await outcomes(promises.slice(0, 2))).toEqual(['org_1', 'org_2']);
    expect(ids()).toEqual(['org_1', 'org_2']);
  });

  test('takes writes that are enqueued while others are acknowledged', async () => {
    const { writer, insert, ids } = openWriter();
    await writer.enqueue(insert('org_1')).then(() => writer.enqueue(insert('org_2')));
    expect(ids()).toEqual(['org_1', 'org_2']);
  });
});
