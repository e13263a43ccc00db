import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Actor } from '../../../src/admin/audit/audit-trail.ts';
import { createCustomProvider, deleteCustomProvider } from '../../../src/admin/providers/custom-providers.ts';
import { readUsageRequest } from '../../../src/admin/usage/usage-query.ts';
import { usageCsv, usageReport } from '../../../src/admin/usage/usage-report.ts';
import { MAX_AMOUNT } from '../../../src/domain/limits.ts';
import type { UsageReport, UsageRow } from '../../../src/generated/types.ts';
import type { Database } from '../../../src/store/db/database.ts';
import { insertCall, type StoredCall } from '../../support/stored-calls.ts';
import { admin, catalog, cli, developer, ID, owner, seededDatabase } from '../tenants.ts';

const NOW = Date.parse('2026-01-31T12:00:00Z');

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

const report = (db: Database, query: object, actor: Actor = owner): UsageReport =>
  usageReport(db, readUsageRequest(db, actor, query, NOW));

const rowsOf = (db: Database, query: object, actor?: Actor): readonly UsageRow[] => report(db, query, actor).usage.rows;

const row = (changes: Partial<UsageRow>): UsageRow => ({
  start: '2026-01-31T00:00:00.000Z',
  memberId: null,
  memberEmail: null,
  model: null,
  provider: null,
  projectId: null,
  projectName: null,
  keyId: null,
  keyDescription: null,
  calls: 1,
  errors: 0,
  denied: 0,
  limitRefusals: 0,
  cacheHits: 0,
  estimatedCalls: 0,
  unknownPriceCalls: 0,
  promptTokens: 0,
  completionTokens: 0,
  reasoningTokens: 0,
  cachedTokens: 0,
  cacheWriteTokens: 0,
  cost: '0',
  ...changes,
});

describe('what is counted', () => {
  it('is every call of the organization, by its outcome', () => {
    const db = seededDatabase();
    insertCall(db, NOW - 1, {
      ...ofOwner,
      cost: 25n,
      promptTokens: 10,
      completionTokens: 6,
      reasoningTokens: 5,
      cachedTokens: 4,
      cacheWriteTokens: 3,
      usageEstimated: 1,
    });
    insertCall(db, NOW - 1, { ...ofOwner, cached: 1 });
    insertCall(db, NOW - 1, { ...ofOwner, statusCode: 502, errorCode: 'upstream_error', cost: 5n });
    insertCall(db, NOW - 1, { ...ofOwner, state: 'denied', statusCode: 403, providerId: null, modelId: null });
    insertCall(db, NOW - 1, { ...ofOwner, state: 'recovered', statusCode: null, cost: 70n });
    insertCall(db, NOW - 1, { ...ofOwner, state: 'open', statusCode: null });
    insertCall(db, NOW - 1, ofForeigner);

    expect(report(db, {})).toEqual({
      usage: {
        from: '2026-01-25T00:00:00.000Z',
        to: '2026-01-31T12:00:00.000Z',
        granularity: 'day',
        groupBy: [],
        rows: [
          row({
            calls: 6,
            errors: 2,
            denied: 1,
            cacheHits: 1,
            estimatedCalls: 1,
            promptTokens: 10,
            completionTokens: 6,
            reasoningTokens: 5,
            cachedTokens: 4,
            cacheWriteTokens: 3,
            cost: '0.0000000001',
          }),
        ],
      },
      nextCursor: null,
    });
  });

  it('is exact where the sum of the costs exceeds 64 bits, and does not fail where that of tokens does', () => {
    const db = seededDatabase();
    const most = { ...ofOwner, cost: MAX_AMOUNT - 1n, promptTokens: Number.MAX_SAFE_INTEGER };
    for (let each = 0; each < 1030; each += 1) insertCall(db, NOW - 1, most);

    const [only] = rowsOf(db, { granularity: 'total' });
    expect([only?.cost, only?.promptTokens]).toEqual(['9269999999.99999999897', Number.MAX_SAFE_INTEGER * 1030]);
  });
});

describe('a price that is not known', () => {
  it('is shown as unknown, never as 0: alone as no cost, among others as calls that the cost leaves out', () => {
    const db = seededDatabase();
    insertCall(db, NOW - 1, { ...ofOwner, modelId: 'a', priceUnknown: 1 });
    insertCall(db, NOW - 1, { ...ofOwner, modelId: 'b', priceUnknown: 1 });
    insertCall(db, NOW - 1, { ...ofOwner, modelId: 'b', cost: 25n });
    insertCall(db, NOW - 1, { ...ofOwner, modelId: 'c' });

    const whole = report(db, { groupBy: 'model' });

    expect(whole.usage.rows).toEqual([
      row({ model: 'a', unknownPriceCalls: 1, cost: null }),
      row({ model: 'b', calls: 2, unknownPriceCalls: 1, cost: '0.000000000025' }),
      row({ model: 'c' }),
    ]);
    const costs = usageCsv(whole)
      .trimEnd()
      .split('\r\n')
      .map((line) => line.split(',').at(-1));
    expect(costs).toEqual(['cost', 'unknown', '0.000000000025', '0']);
  });
});

describe('a call that a limit refused', () => {
  it.each([
    ['usage_limit_reached', 401],
    ['budget_reserved', 429],
  ])('with %s is counted as that, not as an error, under the model that was asked for', (errorCode, statusCode) => {
    const db = seededDatabase();
    const refused = { ...ofOwner, state: 'released', statusCode, errorCode } as const;
    insertCall(db, NOW - 1, { ...refused, requestedModel: 'sandbox/sandbox-paid' });
    insertCall(db, NOW - 1, { ...refused, requestedModel: 'auto', providerId: null, modelId: null });

    expect(rowsOf(db, { groupBy: 'model,provider' })).toEqual([
      row({ model: 'auto', limitRefusals: 1 }),
      row({ model: 'sandbox-paid', provider: 'sandbox', limitRefusals: 1 }),
    ]);
  });

  it('differs from one that a provider refused, or whose price is not known', () => {
    const db = seededDatabase();
    insertCall(db, NOW - 1, { ...ofOwner, statusCode: 429, errorCode: 'upstream_rate_limited' });
    insertCall(db, NOW - 1, { ...ofOwner, state: 'released', statusCode: 400, errorCode: 'invalid_request' });

    expect(rowsOf(db, {})).toEqual([row({ calls: 2, errors: 2 })]);
  });
});

describe('a custom model', () => {
  it('goes by its one name, with its provider, also when that was deleted', () => {
    const db = seededDatabase();
    const providers = { now: NOW, catalog, allowPrivateUpstreams: [] };
    const made = createCustomProvider(db, owner, { name: 'own', baseUrl: 'https://own.example/v1' }, providers);
    insertCall(db, NOW - 1, { ...ofOwner, providerId: 'own', modelId: 'large' });
    insertCall(db, NOW - 1, { ...ofOwner, providerId: 'openai', modelId: 'large' });
    deleteCustomProvider(db, owner, made.customProvider.id, NOW);

    expect(rowsOf(db, { groupBy: 'model' })).toEqual([row({ model: 'large' }), row({ model: 'own/large' })]);
  });
});

describe('identifiers', () => {
  it('have their names next to them, those of the removed too', () => {
    const db = seededDatabase();
    insertCall(db, NOW - 1, ofOwner);
    db.connection.exec(
      'UPDATE keys SET deletedAt = 1; UPDATE members SET removedAt = 1; UPDATE projects SET deletedAt = 1',
    );

    expect(rowsOf(db, { groupBy: 'member,project,key' })).toEqual([
      row({
        memberId: ID.owner,
        memberEmail: 'owner@example.com',
        projectId: ID.project,
        projectName: 'Main',
        keyId: ID.ownerKey,
        keyDescription: "The owner's",
      }),
    ]);
  });
});

describe('the range', () => {
  it('begins with `from` and ends before `to`, in hours and days of UTC', () => {
    const db = seededDatabase();
    for (const time of [
      '29T23:59:59.999',
      '30T00:00:00.000',
      '30T00:59:59.999',
      '30T01:00:00.000',
      '31T00:00:00.000',
    ]) {
      insertCall(db, `2026-01-${time}Z`, ofOwner);
    }
    const starts = (query: object) => rowsOf(db, query).map(({ start, calls }) => `${calls} ${start.slice(8, 16)}`);

    expect(starts({ from: '2026-01-30', to: '2026-01-30' })).toEqual(['3 30T00:00']);
    expect(starts({ from: '2026-01-30T00:00:00Z', to: '2026-01-31T00:00:00Z', granularity: 'hour' })).toEqual([
      '2 30T00:00',
      '1 30T01:00',
    ]);
    expect(starts({ from: '2026-01-30T02:00:00.001+02:00', to: '2026-01-30T01:00:00Z' })).toEqual(['1 30T00:00']);
    expect(starts({ from: '2026-01-29', granularity: 'total' })).toEqual(['5 29T00:00']);
  });

  it.each([
    [{ from: 'yesterday' }, '/from', 'must be a date'],
    [{ from: '2026-02-30', to: '2026-03-05' }, '/from', 'must be a date'],
    [{ from: '2026-01-01T25:00:00Z' }, '/from', 'must be a date'],
    [{ from: '2026-01-02', to: '2026-01-01' }, '/from', 'must lie before'],
    [{ from: '2024-01-01', to: '2025-12-31' }, '/from', 'spans at most 366 days'],
    [{ from: '2025-12-01', to: '2026-01-30', granularity: 'hour' }, '/from', 'spans at most 31 days'],
    [{ granularity: 'week' }, '/granularity', 'must be one of hour, day, total'],
    [{ groupBy: 'key,colour' }, '/groupBy', 'must be a comma list'],
    [{ groupby: 'key' }, '/groupby', 'is not a known field'],
    [{ limit: '0' }, '/limit', 'must be a whole number'],
    [{ limit: '10001' }, '/limit', 'must be a whole number'],
    [{ cursor: 'e30' }, '/cursor', 'does not belong to this list'],
    [{ cursor: 'WzEsMiwzLDQsNSw2XQ' }, '/cursor', 'does not belong to this list'],
  ])('or whatever else is asked, %j, is refused with its place', (query, param, message) => {
    expect(() => report(seededDatabase(), query)).toThrow(
      expect.objectContaining({ status: 400, param, message: expect.stringContaining(message) }),
    );
  });
});

describe('who sees what', () => {
  it('owners, admins and the command line see all calls, developers those with their own keys', () => {
    const db = seededDatabase();
    insertCall(db, NOW - 1, ofOwner);
    insertCall(db, NOW - 1, ofDeveloper);
    const keys = (actor: Actor) => rowsOf(db, { groupBy: 'key' }, actor).map(({ keyId }) => keyId);

    expect([owner, admin, cli].map(keys)).toEqual(Array(3).fill([ID.ownerKey, ID.developerKey]));
    expect(keys(developer)).toEqual([ID.developerKey]);
    expect(rowsOf(db, { memberId: ID.developer }, developer)).toEqual([row({})]);
  });

  it.each([
    ['a key of another organization', { keyId: ID.foreignKey }, owner, 404],
    ['a project of another organization', { projectId: ID.otherProject }, owner, 404],
    ['a member of another organization', { memberId: ID.foreigner }, owner, 404],
    ["another's address", { memberId: 'foreigner@example.com' }, owner, 404],
    ["another's key, for a developer", { keyId: ID.ownerKey }, developer, 404],
    ['another member, for a developer', { memberId: ID.owner }, developer, 403],
  ])('%s is refused', (_, query, actor, status) => {
    expect(() => report(seededDatabase(), query, actor)).toThrow(expect.objectContaining({ status }));
  });

  it('filters take one project, key or member, those that are gone included', () => {
    const db = seededDatabase();
    insertCall(db, NOW - 1, ofOwner);
    insertCall(db, NOW - 1, ofDeveloper);
    db.connection.exec(
      'UPDATE keys SET deletedAt = 1; UPDATE members SET removedAt = 1; UPDATE projects SET deletedAt = 1',
    );

    const sums = [{ keyId: ID.ownerKey }, { memberId: ID.developer }, { projectId: ID.project }].map((query) =>
      rowsOf(db, query).map(({ calls }) => calls),
    );
    expect(sums).toEqual([[1], [1], [2]]);
  });
});

describe('rows', () => {
  const dimension = fc.constantFrom('member', 'model', 'provider', 'project', 'key');
  const call = fc.record({
    minutes: fc.integer({ min: 1, max: 5 * 24 * 60 }),
    of: fc.constantFrom(ofOwner, ofDeveloper, ofForeigner),
    modelId: fc.constantFrom('a', 'b', null),
    providerId: fc.constantFrom('x', 'y', null),
    cost: fc.bigInt({ min: 0n, max: MAX_AMOUNT }),
    promptTokens: fc.nat(1000),
    state: fc.constantFrom('settled', 'denied', 'recovered'),
  });

  it('are the same in pages of any size, and add up to the calls', () => {
    fc.assert(
      fc.property(
        fc.array(call, { maxLength: 60 }),
        fc.constantFrom('hour', 'day', 'total'),
        fc.uniqueArray(dimension),
        fc.integer({ min: 1, max: 7 }),
        (calls, granularity, dimensions, limit) => {
          const db = seededDatabase();
          for (const { minutes, of, ...columns } of calls)
            insertCall(db, NOW - minutes * 60_000, { ...of, ...columns });
          const query = { granularity, ...(dimensions.length === 0 ? {} : { groupBy: dimensions.join(',') }) };
          const whole = report(db, query);
          const pages: UsageRow[] = [];
          for (let cursor: string | null | undefined; cursor !== null; ) {
            const { usage, nextCursor } = report(db, { ...query, limit: String(limit), ...(cursor ? { cursor } : {}) });
            if (nextCursor !== null) expect(usage.rows).toHaveLength(limit);
            pages.push(...usage.rows);
            cursor = nextCursor;
          }

          const own = calls.filter(({ of }) => of !== ofForeigner);
          const tokens = (rows: readonly UsageRow[]) => rows.reduce((sum, { promptTokens }) => sum + promptTokens, 0);
          const pico = (rows: readonly UsageRow[]) => rows.reduce((sum, { cost }) => sum + picoOf(cost ?? '0'), 0n);
          const names = whole.usage.rows.map((each) =>
            [each.start, each.memberId, each.model, each.provider, each.keyId].join(),
          );
          expect(pages).toEqual(whole.usage.rows);
          expect(new Set(names).size).toBe(names.length);
          expect([
            whole.usage.rows.reduce((sum, each) => sum + each.calls, 0),
            tokens(whole.usage.rows),
            pico(whole.usage.rows),
            whole.usage.rows.reduce((sum, each) => sum + each.denied, 0),
          ]).toEqual([
            own.length,
            own.reduce((sum, each) => sum + each.promptTokens, 0),
            own.reduce((sum, each) => sum + each.cost, 0n),
            own.filter(({ state }) => state === 'denied').length,
          ]);
          db.close();
        },
      ),
      { numRuns: 100 },
    );
  });
});

/** Without a bound, unlike `parseUsd`: sums have none. */
function picoOf(usd: string): bigint {
  const [whole = '', fraction = ''] = usd.split('.');
  return BigInt(whole + fraction.padEnd(12, '0'));
}

it('as CSV has a header, null as nothing, and no cell that a spreadsheet takes for a formula', () => {
  const db = seededDatabase();
  for (const model of ['=1+1', '+1', '-1', '@x', '\t', '\r', 'a,"b"', 'plain']) {
    insertCall(db, NOW - 1, { ...ofOwner, modelId: model });
  }
  const rest = ',,,,,,1,0,0,0,0,0,0,0,0,0,0,0,0';
  const start = '2026-01-31T00:00:00.000Z';
  expect(usageCsv(report(db, { groupBy: 'model' })).split('\r\n')).toEqual([
    'start,memberId,memberEmail,model,provider,projectId,projectName,keyId,keyDescription,calls,errors,denied,limitRefusals,cacheHits,estimatedCalls,unknownPriceCalls,promptTokens,completionTokens,reasoningTokens,cachedTokens,cacheWriteTokens,cost',
    ...["'\t", '"\'\r"', "'+1", "'-1", "'=1+1", "'@x", '"a,""b"""', 'plain'].map((cell) => `${start},,,${cell}${rest}`),
    '',
  ]);
});
