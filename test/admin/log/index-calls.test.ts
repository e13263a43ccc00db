// The job that indexes calls: whole blocks, by themselves, and nothing else.
import { expect, test, vi } from 'vitest';
import { startIndexingCalls } from '../../../src/admin/log/index-calls.ts';
import { Turns } from '../../../src/domain/turns.ts';
import type { Database } from '../../../src/store/db/database.ts';
import { build } from '../../../src/store/db/sql.ts';
import { BLOCK } from '../../../src/store/ledger/call-index.ts';
import { createCallReferences } from '../../../src/store/ledger/call-references.ts';
import { START, storeWithTenant } from '../../store/fixture.ts';
import { insertCall } from '../../support/stored-calls.ts';

test('whole blocks of calls are indexed, and the rest is left for later', async () => {
  const { store, path, tenant } = await storeWithTenant();
  const { organizationId, projectId, keyId, memberId } = tenant;
  const store2Blocks = (db: Database): number[] => {
    const references = createCallReferences(db);
    return Array.from({ length: 2 * BLOCK + 5 }, (_, place) => {
      const call = { organizationId, projectId, keyId, memberId };
      return insertCall(db, START + place * 1000, call, undefined, references).number;
    });
  };
  const numbers = await store.write(store2Blocks);
  const warnings: unknown[] = [];
  const telemetry = { warn: (...args: unknown[]) => void warnings.push(args) };
  const stop = startIndexingCalls({ databasePath: path, store, turns: new Turns(), telemetry, everyMs: 20 });
  const indexed = () =>
    store.read((db) => db.all(build.selectFrom('call_index').select('last').distinct().orderBy('last')));
  try {
    await vi.waitFor(async () => expect(await indexed()).toHaveLength(2), { timeout: 20_000 });
  } finally {
    await stop();
  }
  expect(await indexed()).toEqual([{ last: numbers[BLOCK - 1] }, { last: numbers[2 * BLOCK - 1] }]);
  expect(warnings).toEqual([]);
}, 60_000);
