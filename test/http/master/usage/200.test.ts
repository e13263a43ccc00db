import { afterAll, beforeAll, expect, it } from 'vitest';
import { ID } from '../../../admin/tenants.ts';
import { insertCall } from '../../../support/stored-calls.ts';
import { type ManagementServer, startManagementServer } from '../management-server.ts';

let server: ManagementServer;
beforeAll(async () => {
  server = await startManagementServer();
  await server.store.write((db) => {
    const call = { organizationId: ID.organization, projectId: ID.project, providerId: 'sandbox', cost: 3n };
    for (const [day, key, member] of [
      ['30', ID.ownerKey, ID.owner],
      ['31', ID.ownerKey, ID.owner],
      ['31', ID.developerKey, ID.developer],
    ] as const) {
      insertCall(db, `2026-01-${day}T01:30:00Z`, { ...call, keyId: key, memberId: member });
    }
  });
});
afterAll(() => server.close());

const counts = { errors: 0, denied: 0, cacheHits: 0, estimatedCalls: 0, promptTokens: 0, completionTokens: 0 };
const nothing = {
  ...counts,
  limitRefusals: 0,
  unknownPriceCalls: 0,
  reasoningTokens: 0,
  cachedTokens: 0,
  cacheWriteTokens: 0,
};
const names = { memberEmail: null, projectName: null, keyDescription: null };
const ungrouped = { ...names, memberId: null, model: null, provider: null, projectId: null, keyId: null };

it('sums up the last seven days by the day', async () => {
  const { status, text, headers } = await server.request('GET', '/v1/master/usage');
  expect([status, headers.get('content-type'), headers.get('cache-control')]).toEqual([
    200,
    'application/json; charset=utf-8',
    'no-store',
  ]);
  expect(JSON.parse(text)).toEqual({
    usage: {
      from: '2026-01-25T00:00:00.000Z',
      to: '2026-01-31T12:00:00.000Z',
      granularity: 'day',
      groupBy: [],
      rows: [
        { ...ungrouped, ...nothing, start: '2026-01-30T00:00:00.000Z', calls: 1, cost: '0.000000000003' },
        { ...ungrouped, ...nothing, start: '2026-01-31T00:00:00.000Z', calls: 2, cost: '0.000000000006' },
      ],
    },
    nextCursor: null,
  });
});

it('shows developers what was called with their own keys', async () => {
  const { text } = await server.request('GET', '/v1/master/usage?granularity=total&groupBy=key', {
    token: server.tokens.developer,
  });
  expect(JSON.parse(text).usage.rows.map((row: { keyId: string }) => row.keyId)).toEqual([ID.developerKey]);
});

it('is a CSV file where that is asked for, page by page', async () => {
  const answers: { status: number; text: string; headers: Headers }[] = [];
  for (let cursor: string | null = ''; cursor !== null; cursor = answers.at(-1)?.headers.get('x-next-cursor') ?? null) {
    const path = `/v1/master/usage?format=csv&groupBy=key&limit=2&to=2026-01-31${cursor && `&cursor=${cursor}`}`;
    const response = await fetch(server.origin + path, { headers: { authorization: `Bearer ${server.tokens.owner}` } });
    answers.push({ status: response.status, text: await response.text(), headers: response.headers });
  }

  const [first, second] = answers;
  expect([answers.length, first?.status, first?.headers.get('content-type')]).toEqual([
    2,
    200,
    'text/csv; charset=utf-8',
  ]);
  expect(first?.headers.get('content-disposition')).toBe('attachment; filename="usage-2026-01-25-2026-01-31.csv"');
  const head =
    'start,memberId,memberEmail,model,provider,projectId,projectName,keyId,keyDescription,calls,errors,denied,limitRefusals,cacheHits,estimatedCalls,unknownPriceCalls,promptTokens,completionTokens,reasoningTokens,cachedTokens,cacheWriteTokens,cost';
  const line = (day: string, key: string, description: string) =>
    `2026-01-${day}T00:00:00.000Z,,,,,,,${key},${description},1,0,0,0,0,0,0,0,0,0,0,0,0.000000000003`;
  expect(first?.text).toBe(
    `${[head, line('30', ID.ownerKey, "The owner's"), line('31', ID.ownerKey, "The owner's")].join('\r\n')}\r\n`,
  );
  expect(second?.text).toBe(`${[head, line('31', ID.developerKey, "The developer's")].join('\r\n')}\r\n`);
});

it('of another organization shows nothing of this one', async () => {
  const { text } = await server.request('GET', '/v1/master/usage', { token: server.tokens.foreigner });
  expect(JSON.parse(text).usage.rows).toEqual([]);
});
