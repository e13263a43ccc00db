// The job that indexes calls: whole blocks, by themselves, and nothing else.
import { expect, onTestFinished, test, vi } from 'vitest';
import { startFollowingCalls } from '../../../src/admin/log/follow-calls.ts';
import { newId } from '../../../src/domain/id.ts';
import type { Database } from '../../../src/store/db/database.ts';
import { DatabaseThread } from '../../../src/store/db/database-thread.ts';
import { build } from '../../../src/store/db/sql.ts';
import { nextReportCounts } from '../../../src/store/ledger/call-follower.ts';
import { BLOCK } from '../../../src/store/ledger/call-index.ts';
import { createCallReferences } from '../../../src/store/ledger/references.ts';
import { insertRule } from '../../../src/store/rules/rules.ts';
import { createTelemetry } from '../../../src/telemetry/telemetry.ts';
import { newDecision, START, storeWithTenant } from '../../store/fixture.ts';
import { insertCall } from '../../support/stored-calls.ts';

/** @param path of the database */
function following({
  path,
  ...deps
}: Pick<Parameters<typeof startFollowingCalls>[0], 'store' | 'telemetry'> & { path: string }) {
  const data = { databasePath: path, decisionFile: undefined };
  const reader = new DatabaseThread({ job: 'readDatabase', data });
  onTestFinished(() => reader.close());
  return startFollowingCalls({ reader, hasDecisionFile: false, writeHead: undefined, ...deps, everyMs: 20 });
}

test('whole blocks of calls are indexed, and the rest is left for later', async () => {
  const { store, path, tenant } = await storeWithTenant({ auditKey: Buffer.alloc(32, 1) });
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
  const silent = createTelemetry({ level: 'silent', accessLog: 'off' });
  const telemetry = { ...silent, warn: (...args: unknown[]) => void warnings.push(args) };
  const stop = following({ path, store, telemetry });
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

test('what report rules would have changed is counted; without such rules calls are passed over', async () => {
  const { store, path, tenant } = await storeWithTenant({ auditKey: Buffer.alloc(32, 1) });
  const { organizationId, projectId, keyId, memberId } = tenant;
  const whose = { organizationId, projectId, keyId, memberId };
  const reported: unknown[] = [];
  const telemetry = {
    ...createTelemetry({ level: 'silent', accessLog: 'off' }),
    reported: (each: unknown) => void reported.push(each),
  };
  const stop = following({ path, store, telemetry });
  onTestFinished(stop);
  const counted = () =>
    vi.waitFor(async () => expect(await store.read(nextReportCounts)).toBeUndefined(), { timeout: 20_000 });
  const call = (db: Database, ruleId: string, place: number) => {
    const shadowJson = JSON.stringify({ permitted: [], would_deny: [ruleId], would_allow: [] });
    const decision = newDecision({ ruleRevision: 9, shadowJson });
    return insertCall(db, START + place * 1000, whose, decision);
  };
  await store.write((db) => call(db, newId('rule'), 0));
  await counted();
  expect(reported).toEqual([]);
  const rule = { id: newId('rule'), ruleType: 'deny_models', ruleValue: { models: ['large'] }, description: null };
  const { reportRevision } = await store.write((db, now) =>
    insertRule(db, organizationId, keyId, { ...rule, mode: 'report', status: 'active' }, () => '{"enforce":{}}', now),
  );
  expect(reportRevision).toBeLessThanOrEqual(9);
  await store.write((db) => [1, 2].map((place) => call(db, rule.id, place)));
  await counted();
  expect(reported).toEqual([{ ruleId: rule.id, revision: 9, wouldDeny: 2, wouldAllow: 0, lastSeenAt: START + 2000 }]);
}, 60_000);
