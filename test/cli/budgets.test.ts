import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CommandLine, createCommandLine, jsonOf } from './command-line.ts';

let portcullis: CommandLine;

beforeAll(async () => {
  portcullis = await createCommandLine();
});
afterAll(() => portcullis.close());

const budgets = (...args: string[]) => portcullis.run('budgets', ...args);
const cells = (stdout: string): string[][] =>
  stdout
    .trimEnd()
    .split('\n')
    .map((line) => line.split(/ {2,}/));
const TITLES = ['NAME', 'OF', 'STATE', 'USD SPENT', 'USD LIMIT', 'USD SPENT IN WINDOW', 'ID'];

describe('portcullis budgets', () => {
  it('sets, lists, shows and removes the limits of a project, a member and the organization', async () => {
    const { projectId } = portcullis.first;
    expect(cells((await budgets('set', '--project', 'Default', '--limit', '25')).stdout)).toEqual([
      TITLES,
      ['Default', 'project', 'active', '0', '25 in all', '-', projectId],
    ]);
    const monthly = ['--period-limit', '500', '--period', '1month'];
    const set = Object(jsonOf(await budgets('set', '--organization', ...monthly, '--json')));
    expect(set.budget).toEqual({
      id: portcullis.first.organizationId,
      scope: 'organization',
      name: expect.any(String),
      state: 'active',
      usageLimit: null,
      usage: '0',
      periodUsageLimit: '500',
      periodUsageDurationValue: 1,
      periodUsageDurationUnit: 'month',
      periodUsageAlignment: null,
      currentPeriodUsage: '0',
      currentPeriodStartedAt: null,
      currentPeriodResetAt: null,
    });
    const { members } = Object(jsonOf(await portcullis.run('members', 'list', '--json')));
    const [{ id, email }] = members;
    await budgets('set', '--member', email, '--limit', '0');

    expect(cells((await budgets('list', '--wide')).stdout)).toEqual([
      TITLES,
      [email, 'member', 'limit_reached', '0', '0 in all', '-', id],
      [set.budget.name, 'organization', 'active', '0', '500 per 1 month', '0', set.budget.id],
      ['Default', 'project', 'active', '0', '25 in all', '-', projectId],
    ]);
    await budgets('remove', '--member', id);
    expect(cells((await budgets('show', '--member', id)).stdout)[1]).toEqual([
      email,
      'member',
      'active',
      '0',
      '-',
      '-',
      id,
    ]);
  });

  it.each([
    [['set', '--limit', '5'], 2, 'Name the owner of the budget: --member, --project or --organization.'],
    [['set', '--organization'], 2, 'Say what to change: --limit, --period-limit, --period.'],
    [['set', '--organization', '--limit', 'much'], 2, '--limit ("much") must be "none" or an amount in USD'],
    [
      ['set', '--member', 'nobody@example.com', '--limit', '5'],
      1,
      'There is no member with the id or e-mail "nobody@example.com".',
    ],
  ])('%j is refused', async (args, code, message) => {
    const refused = await budgets(...args);
    expect(refused).toMatchObject({ code, stdout: '' });
    expect(refused.stderr).toContain(`portcullis: ${message}`);
  });
});
