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
import { verifyAuditChain } from '../../../src/store/audit/audit-chain.ts';
import { databasePath } from '../../../src/store/db/data-dir.ts';
import { type Database, openDatabase } from '../../../src/store/db/database.ts';
import { build } from '../../../src/store/db/sql.ts';
import { forgetCalls, forgetDecisions } from '../../../src/store/ledger/retention.ts';
import { bearer, hello, JSON_TYPE } from '../../support/chat.ts';
import { newDataDir, testConfig } from '../../support/gateway.ts';
import { send } from '../../support/request.ts';
import { insertCall, type StoredCall } from '../../support/stored-calls.ts';
import { auditKey, ID, owner, pepper, seededDatabase, startMs } from '../tenants.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const NOW = Date.parse('2026-01-31T12:30:00Z');
const BEFORE = Date.parse('2026-01-29T12:00:00Z');

const ofOwner: StoredCall = {
  organization_id: ID.organization,
  project_id: ID.project,
  key_id: ID.ownerKey,
  member_id: ID.owner,
  provider_id: 'sandbox',
  model_id: 'sandbox-paid',
};
const ofDeveloper: StoredCall = { ...ofOwner, key_id: ID.developerKey, member_id: ID.developer };
const ofForeigner: StoredCall = {
  ...ofOwner,
  organization_id: ID.otherOrganization,
  project_id: ID.otherProject,
  key_id: ID.foreignKey,
  member_id: ID.foreigner,
};

/** By a limit, where several models could have served. */
const REFUSED = {
  state: 'released',
  status_code: 401,
  error_code: 'usage_limit_reached',
  provider_id: null,
  model_id: null,
  requested_model: 'auto',
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
      prompt_tokens: number,
      completion_tokens: 2 * number,
      cost_pico: BigInt(number) * 1_234_567_890_123n,
      ...(number % 5 === 0 ? { state: 'denied', status_code: 403, provider_id: null, model_id: null } : {}),
      ...(number % 7 === 0 ? { status_code: 502, error_code: 'upstream_error' } : {}),
      ...(number % 11 === 0 ? { cached: 1 } : {}),
      ...(number % 13 === 0 ? { price_unknown: 1, cost_pico: 0n } : {}),
      ...(number % 17 === 0 ? REFUSED : {}),
    });
  }
});

const calls = (): { id: string; state: string }[] =>
  db.all(build.selectFrom('calls').select(['id', 'state']).orderBy('id'));

function forgetAll(limit: number): number[] {
  const counts: number[] = [];
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
    insertCall(db, BEFORE - DAY, { ...ofOwner, state: 'open', settled_at: null, status_code: null });
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
    insertCall(db, BEFORE - DAY, { ...ofOwner, key_id: id, cost_pico: 3_000_000_000_000n });
    forgetAll(50);
    expect(getKey(db, owner, id, NOW).key).toMatchObject({ usage: '3', usageLimit: '5', state: 'active' });
    expect(verifyAuditChain(db, auditKey, undefined, () => {}).fault).toBeUndefined();
  });
});

describe('the job', () => {
  let number = 0;
  const insertDecision = (time: number): void => {
    number += 1;
    const id = idsFrom('dec', time).slice(0, -8) + number.toString(16).padStart(8, '0');
    const made = { call_id: '', created_at: time, action: 'chat', requested_model: 'm', outcome: 'permit' } as const;
    const seen = { violations_json: '[]', bundle_digest: '', data_digest: 'seen', rule_revision: 0, input_json: '{}' };
    const whose = { organization_id: ID.organization, key_id: ID.ownerKey };
    db.run(build.insertInto('decisions').values({ id, ...whose, ...made, ...seen }));
  };

  it('deletes calls and decisions, says how many, and ends on request', async () => {
    for (const time of [BEFORE - DAY, BEFORE - 1, BEFORE, NOW]) insertDecision(time);
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
      ['deleted what is older than RETENTION_DAYS', { calls: old, decisions: 2, before: '2026-01-29T12:00:00.000Z' }],
    ]);
    expect(calls().every(({ id }) => id >= idsFrom('call', BEFORE))).toBe(true);
    expect(forgetDecisions(db, BEFORE, 10)).toBe(0);
    expect(forgetDecisions(db, NOW + 1, 10)).toBe(2);
  });

  it('deletes no more than a hundred decisions at once, until none is left', async () => {
    for (let time = BEFORE - DAY; time < BEFORE - DAY + 250; time += 1) insertDecision(time);
    const left = (): number => db.connection.prepare<[], number>('SELECT count(*) FROM decisions').pluck().get() ?? 0;
    const leftAfterEach: number[] = [];
    const said: unknown[] = [];
    const stop = startForgettingCalls(2, {
      store: {
        write: async (operation) => {
          const result = operation(db, NOW);
          leftAfterEach.push(left());
          return result;
        },
      },
      clock: new ManualClock(NOW),
      telemetry: { info: (_, fields) => said.push(fields), warn: (message) => said.push(message) },
    });
    while (said.length === 0) await sleep(5);
    await stop();
    expect(said).toMatchObject([{ decisions: 250 }]);
    // Calls come first; the last write of each finds nothing more.
    expect(leftAfterEach.slice(-4)).toEqual([150, 50, 0, 0]);
    expect(leftAfterEach.slice(0, -4).every((count) => count === 250)).toBe(true);
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
