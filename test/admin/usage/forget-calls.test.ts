// RETENTION_DAYS: what is deleted, and what goes on from what is kept (issue 12, 16).
import { rmSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, describe, expect, it } from 'vitest';
import { createKey, getKey } from '../../../src/admin/keys/keys.ts';
import { startForgettingCalls } from '../../../src/admin/usage/forget-calls.ts';
import { readUsageRequest } from '../../../src/admin/usage/usage-query.ts';
import { usageReport } from '../../../src/admin/usage/usage-report.ts';
import { createContainer } from '../../../src/container.ts';
import { idsFrom } from '../../../src/domain/id.ts';
import { ManualClock } from '../../../src/domain/time.ts';
import { verifyAuditChain } from '../../../src/store/audit/audit-entries.ts';
import { databasePath } from '../../../src/store/db/data-dir.ts';
import { type Database, openDatabase } from '../../../src/store/db/database.ts';
import { build } from '../../../src/store/db/sql.ts';
import { forgetCalls, forgetReferences } from '../../../src/store/ledger/retention.ts';
import { newDecision } from '../../store/fixture.ts';
import { bearer, hello, JSON_TYPE } from '../../support/chat.ts';
import { newDataDir, testConfig } from '../../support/gateway.ts';
import { send } from '../../support/request.ts';
import { giveUpCalls, insertCall, type StoredCall } from '../../support/stored-calls.ts';
import { auditKey, ID, owner, pepper, seededDatabase, startMs } from '../tenants.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const NOW = Date.parse('2026-01-31T12:30:00Z');
const BEFORE = Date.parse('2026-01-29T12:00:00Z');

const ofOwner: StoredCall = {
  organizationId: ID.organization,
  projectId: ID.project,
  keyId: ID.ownerKey,
  memberId: ID.owner,
  providerId: 'sandbox',
  modelId: 'sandbox-paid',
};
const ofDeveloper: StoredCall = { ...ofOwner, keyId: ID.developerKey, memberId: ID.developer };
const ofForeigner: StoredCall = {
  ...ofOwner,
  organizationId: ID.otherOrganization,
  projectId: ID.otherProject,
  keyId: ID.foreignKey,
  memberId: ID.foreigner,
};

/** By a limit, where several models could have served. */
const REFUSED = {
  state: 'released',
  statusCode: 401,
  errorCode: 'usage_limit_reached',
  providerId: null,
  modelId: null,
  requestedModel: 'auto',
} as const;

let db: Database;

/** Calls of all kinds, every 37 minutes from the 27th on: 174 in all. */
beforeEach(() => {
  db = seededDatabase();
  let number = 0;
  for (let time = Date.parse('2026-01-27T00:05:00Z'); time < NOW; time += 37 * 60_000) {
    number += 1;
    const call = [ofOwner, ofDeveloper, ofForeigner][number % 3] ?? ofOwner;
    insertCall(db, time, {
      ...call,
      promptTokens: number,
      completionTokens: 2 * number,
      cost: BigInt(number) * 1_234_567_890_123n,
      ...(number % 5 === 0 ? { state: 'denied', statusCode: 403, providerId: null, modelId: null } : {}),
      ...(number % 7 === 0 ? { statusCode: 502, errorCode: 'upstream_error' } : {}),
      ...(number % 11 === 0 ? { cached: 1 } : {}),
      ...(number % 13 === 0 ? { priceUnknown: 1, cost: 0n } : {}),
      ...(number % 17 === 0 ? REFUSED : {}),
    });
  }
});

const calls = (): { id: string; state: string }[] =>
  db.all(build.selectFrom('calls').select(['id', 'state']).orderBy('id'));

function forgetAll(limit: number): number[] {
  const counts: number[] = [];
  giveUpCalls(db, BEFORE);
  for (let count = limit; count > 0; ) {
    count = forgetCalls(db, BEFORE, limit);
    counts.push(count);
  }
  return counts;
}

/** Usage reports of the same time in every granularity, as a whole and by everything that rows are grouped by. */
const reports = () =>
  ['hour', 'day', 'total'].flatMap((granularity) =>
    ['member', 'model,provider', 'member,model,provider,project,key', undefined].flatMap((groupBy) =>
      [{}, { keyId: ID.developerKey }, { memberId: ID.owner }].map((filter) => {
        const query = { from: '2026-01-27', to: '2026-01-31', granularity, limit: '10000', ...filter };
        const request = readUsageRequest(db, owner, groupBy === undefined ? query : { ...query, groupBy }, NOW);
        return usageReport(db, request);
      }),
    ),
  );

describe('calls that are deleted', () => {
  it('stay in every usage report, to the last digit', () => {
    const before = reports();
    const counts = forgetAll(7);
    expect(counts.reduce((sum, count) => sum + count)).toBeGreaterThan(80);
    expect(reports()).toEqual(before);
    expect(before[0]?.usage.rows.length).toBeGreaterThan(20);
  });

  it('are those that began before the time, but for open ones', () => {
    insertCall(db, BEFORE - DAY, { ...ofOwner, state: 'open', settledAt: null, statusCode: null });
    const kept = calls().filter(({ id, state }) => id >= idsFrom('call', BEFORE) || state === 'open');
    forgetAll(50);
    expect(calls()).toEqual(kept);
  });

  it('go in chunks of a bounded number, which never leave an hour counted twice', () => {
    const counts = forgetAll(1);
    expect(counts.slice(0, -1).every((count) => count === 1)).toBe(true);
    const sum = db.connection.prepare<[], number>('SELECT sum(calls) FROM kept_usage').pluck().get() ?? 0;
    expect(sum).toBe(counts.length - 1);
  });

  it('take nothing from what their key has spent, nor from the audit log', () => {
    const { id } = createKey(db, owner, { projectId: ID.project, usageLimit: '5' }, { now: startMs, pepper }).key;
    db.connection.prepare('UPDATE keys SET usage = ? WHERE id = ?').run(3_000_000_000_000n, id);
    insertCall(db, BEFORE - DAY, { ...ofOwner, keyId: id, cost: 3_000_000_000_000n });
    forgetAll(50);
    expect(getKey(db, owner, id, NOW).key).toMatchObject({ usage: '3', usageLimit: '5', state: 'active' });
    expect(verifyAuditChain(db, auditKey, undefined, () => {}).fault).toBeUndefined();
  });
});

/** Whatever calls refer to, by its tables. */
const referredTo = () =>
  ['call_origins', 'call_verdicts', 'call_targets', 'data_documents'].map((table) =>
    db.connection.prepare<[], number>(`SELECT count(*) FROM ${table}`).pluck().get(),
  );

describe('what calls refer to', () => {
  beforeEach(() => {
    db = seededDatabase();
  });

  const forget = (before: number, limit: number): number[] => {
    const counts: number[] = [];
    for (let count = 1; count > 0; ) {
      count = forgetReferences(db, before, limit);
      counts.push(count);
    }
    return counts;
  };

  it('goes, a bounded number at once, when the last call of a later day is all that is left', () => {
    for (const day of [3, 2, 1]) {
      const decision = newDecision({ inputJson: `{"day":${day}}`, dataDigest: `of day ${day}` });
      insertCall(
        db,
        BEFORE - day * DAY,
        { ...ofOwner, requestedModel: `model-${day}`, modelId: `model-${day}` },
        decision,
      );
    }
    expect(forget(BEFORE, 1)).toEqual([0]);
    giveUpCalls(db, BEFORE - 1.5 * DAY);
    expect(forgetCalls(db, BEFORE - 1.5 * DAY, 10) + forgetCalls(db, BEFORE - 1.5 * DAY, 10)).toBe(2);
    expect(forget(BEFORE, 1)).toEqual([1, 1, 1, 1, 1, 1, 1, 1, 0]);
    expect(referredTo()).toEqual([1, 1, 1, 1]);
    expect(db.all(build.selectFrom('decisions').select(['inputJson', 'dataDigest']))).toEqual([
      { inputJson: '{"day":1}', dataDigest: 'of day 1' },
    ]);
  });

  it('stays while one call refers to it, however old it is, and what was used since the time', () => {
    const decision = newDecision();
    insertCall(db, BEFORE - 3 * DAY, ofOwner, decision);
    insertCall(db, BEFORE - 2 * DAY, ofOwner, decision);
    insertCall(db, BEFORE - 3 * DAY, { ...ofDeveloper, state: 'open' });
    forgetAll(10);
    expect(forget(BEFORE, 10)).toEqual([0]);
    db.run(build.deleteFrom('ledger'));
    expect(forget(BEFORE - 2 * DAY, 10)).toEqual([1, 0]);
    expect(referredTo()).toEqual([1, 1, 1, 1]);
    expect(forget(BEFORE, 10)).toEqual([1, 1, 1, 1, 0]);
    expect(referredTo()).toEqual([0, 0, 0, 0]);
  });
});

describe('the job', () => {
  it('deletes calls with their decisions, and what only they refer to, says how many, and ends on request', async () => {
    const decision = newDecision();
    insertCall(db, BEFORE - DAY, { ...ofOwner, requestedModel: 'old', modelId: 'old' }, decision);
    insertCall(db, BEFORE, ofOwner, newDecision({ outcome: 'deny' }));
    const old = calls().filter(({ id }) => id < idsFrom('call', BEFORE)).length;
    const said: unknown[] = [];
    const stop = startForgettingCalls(2, {
      store: { write: async (operation) => operation(db, NOW) },
      clock: new ManualClock(NOW),
      telemetry: {
        info: (message, fields) => said.push([message, fields]),
        warn: (message) => said.push(message),
      },
    });
    while (said.length === 0) await sleep(5);
    await stop();
    expect(said).toEqual([
      ['deleted what is older than RETENTION_DAYS', { calls: old, before: '2026-01-29T12:00:00.000Z' }],
    ]);
    expect(calls().every(({ id }) => id >= idsFrom('call', BEFORE))).toBe(true);
    expect(db.all(build.selectFrom('call_verdicts').select('outcome'))).toEqual([{ outcome: 'deny' }]);
    expect(db.get(build.selectFrom('call_origins').select('id').where('requestedModel', '=', 'old'))).toBeUndefined();
  });

  it('deletes no more than a hundred calls at once, until none is left', async () => {
    db = seededDatabase();
    for (let time = BEFORE - DAY; time < BEFORE - DAY + 250; time += 1) insertCall(db, time, ofOwner);
    const leftAfterEach: number[] = [];
    const said: unknown[] = [];
    const stop = startForgettingCalls(2, {
      store: {
        write: async (operation) => {
          const result = operation(db, NOW);
          leftAfterEach.push(calls().length);
          return result;
        },
      },
      clock: new ManualClock(NOW),
      telemetry: { info: (_, fields) => said.push(fields), warn: (message) => said.push(message) },
    });
    while (said.length === 0) await sleep(5);
    await stop();
    expect(said).toMatchObject([{ calls: 250 }]);
    // The last write of calls finds nothing more; then what they refer to goes.
    expect(leftAfterEach.filter((left) => left < 250).slice(0, 4)).toEqual([150, 50, 0, 0]);
  });

  it.each([
    ['2', { calls: 0, decisions: 0 }],
    ['off', { calls: 1, decisions: 1 }],
  ])('runs in a server with RETENTION_DAYS=%s: of a call of three days ago %j is left', async (days, wanted) => {
    const folder = newDataDir();
    const first = await createContainer(testConfig(folder));
    const headers = [bearer(first.firstRun?.gatewayKey ?? ''), JSON_TYPE];
    const sent = { method: 'POST', path: '/v1/chat/completions', headers, body: JSON.stringify(hello()) };
    expect((await send(first.gateway.origin, sent)).status).toBe(200);
    await first.close();

    const stored = openDatabase(databasePath(folder));
    const left = (table: 'calls' | 'decisions') => stored.all(build.selectFrom(table).select('id')).length;
    expect([left('calls'), left('decisions')]).toEqual([1, 1]);
    const clock = new ManualClock(Date.now() + 3 * DAY);
    const second = await createContainer(testConfig(folder, { RETENTION_DAYS: days }), { clock });
    while (left('decisions') > wanted.decisions) await sleep(5);
    await second.close();
    const now = { calls: left('calls'), decisions: left('decisions') };
    stored.close();
    rmSync(folder, { recursive: true, force: true });
    expect(now).toEqual(wanted);
  });

  it('says that the database could not take it, and goes on with what is left at the next run', async () => {
    const said: unknown[] = [];
    const stop = startForgettingCalls(2, {
      store: { write: () => Promise.reject(new Error('disk full')) },
      clock: new ManualClock(NOW),
      telemetry: { info: (message) => said.push(message), warn: (message, fields) => said.push([message, fields]) },
    });
    while (said.length === 0) await sleep(5);
    await stop();
    expect(said).toEqual([['old calls were not deleted', { error: expect.stringContaining('disk full') }]]);
  });
});
