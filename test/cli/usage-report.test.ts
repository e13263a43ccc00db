import { afterAll, beforeAll, expect, it } from 'vitest';
import { insertCall } from '../support/stored-calls.ts';
import { type CommandLine, createCommandLine, jsonOf } from './command-line.ts';

let cli: CommandLine;
let keyId: string;

beforeAll(async () => {
  cli = await createCommandLine();
  const { organizationId, projectId } = cli.first;
  await cli.store.write((db) => {
    const key = db.connection.prepare<[], { id: string; createdBy: string }>('SELECT id, createdBy FROM keys').get();
    keyId = key?.id ?? '';
    const call = {
      organizationId,
      projectId,
      keyId,
      memberId: key?.createdBy ?? '',
    };
    for (const [time, cost, priceUnknown] of [
      ['2026-03-01T10:00:00Z', 1_500_000_000_000n, 0],
      ['2026-03-01T11:00:00Z', 1n, 0],
      ['2026-03-02T10:00:00Z', 0n, 1],
    ] as const) {
      const of = { ...call, modelId: 'large', providerId: 'acme', promptTokens: 7 };
      insertCall(db, time, { ...of, cost, priceUnknown });
    }
  });
});
afterAll(() => cli.close());

const MARCH = ['--from', '2026-03-01', '--to', '2026-03-31'];

it('prints an aligned table', async () => {
  const { code, stdout, stderr } = await cli.run(
    'usage',
    ...MARCH,
    '--group-by',
    'model',
    '--key',
    'First gateway key',
  );
  expect([code, stderr, stdout.split('\n')]).toEqual([
    0,
    '',
    [
      'DAY         MODEL  CALLS  ERRORS  DENIED  TOKENS IN  TOKENS OUT  USD',
      '2026-03-01  large  2      0       0       14         0           1.500000000001',
      '2026-03-02  large  1      0       0       7          0           unknown',
      '',
      '2026-03-01T00:00:00.000Z to 2026-04-01T00:00:00.000Z, UTC',
      '',
    ],
  ]);
});

it('shows names in the place of identifiers, and that a part of the cost is unknown', async () => {
  const { stdout } = await cli.run('usage', ...MARCH, '--by', 'total', '--group-by', 'member,project,key');
  const { members } = Object(jsonOf(await cli.run('members', 'list', '--json')));
  expect(
    stdout
      .split('\n')
      .slice(0, 2)
      .map((line) => line.split(/ {2,}/)),
  ).toEqual([
    ['MEMBER', 'PROJECT', 'KEY', 'CALLS', 'ERRORS', 'DENIED', 'TOKENS IN', 'TOKENS OUT', 'USD'],
    [members[0].email, 'Default', 'First gateway key', '3', '0', '0', '21', '0', '1.500000000001 + unknown'],
  ]);
});

it('prints what the master API answers', async () => {
  const printed = jsonOf(await cli.run('usage', ...MARCH, '--by', 'total', '--group-by', 'key', '--json'));
  expect(printed).toMatchObject({
    usage: { granularity: 'total', groupBy: ['key'], rows: [{ keyId, calls: 3, cost: '1.500000000001' }] },
    nextCursor: null,
  });
});

it('prints CSV', async () => {
  const { stdout } = await cli.run('usage', ...MARCH, '--by', 'hour', '--csv');
  expect(stdout.split('\r\n').slice(1, -1)).toEqual([
    '2026-03-01T10:00:00.000Z,,,,,,,,,1,0,0,0,0,0,0,7,0,0,0,0,1.5',
    '2026-03-01T11:00:00.000Z,,,,,,,,,1,0,0,0,0,0,0,7,0,0,0,0,0.000000000001',
    '2026-03-02T10:00:00.000Z,,,,,,,,,1,0,0,0,0,0,1,7,0,0,0,0,unknown',
  ]);
});

it('says when there were no calls, and what is wrong', async () => {
  const none = await cli.run('usage', '--from', '2026-01-01', '--to', '2026-01-01');
  const wrong = await cli.run('usage', '--from', 'monday');
  const both = await cli.run('usage', '--json', '--csv');
  expect(none.stdout).toBe('No calls from 2026-01-01T00:00:00.000Z to 2026-01-02T00:00:00.000Z.\n');
  expect([wrong.code, wrong.stderr]).toEqual([
    2,
    'portcullis: --from ("monday") must be a date such as 2026-01-31, or an RFC 3339 time such as 2026-01-31T12:00:00Z.\n',
  ]);
  expect([both.code, both.stderr]).toEqual([2, 'portcullis: Choose --json or --csv.\n']);
});
