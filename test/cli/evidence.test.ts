import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { confirm } from '../../src/cli/terminal/output.ts';
import { idLike } from '../../src/domain/id.ts';
import { build } from '../../src/store/db/sql.ts';
import { nextReportCounts, storeReportCounts } from '../../src/store/ledger/call-follower.ts';
import { newDecision } from '../store/fixture.ts';
import { insertCall } from '../support/stored-calls.ts';
import { type CommandLine, createCommandLine, jsonOf } from './command-line.ts';

let portcullis: CommandLine;
let rule: string;
/** Of the decision that the rule would have changed, and when it was made. */
let decision: string;
const TIME = new Date(Math.floor(Date.now() / 1000) * 1000 + 60_000).toISOString();

beforeEach(async () => {
  portcullis = await createCommandLine();
  const { organizationId, projectId } = portcullis.first;
  const key = await portcullis.store.read((db) =>
    db.get(build.selectFrom('keys').selectAll().where('kind', '=', 'regular')),
  );
  const whose = { organizationId, projectId, keyId: key?.id ?? '', memberId: key?.createdBy ?? '' };
  const add = async (...args: string[]): Promise<string> => {
    const added = await portcullis.run('rules', 'add', '--key', whose.keyId, ...args, '--mode', 'report', '--json');
    return JSON.parse(added.stdout).rule.id;
  };
  rule = await add('allow_models', 'small', '--description', 'small only');
  const other = await add('deny_models', 'huge');
  const seenBy = (ids: string[], permitted: string[]) =>
    newDecision({ ruleRevision: 9, shadowJson: JSON.stringify({ permitted, would_deny: ids, would_allow: [] }) });
  const call = { ...whose, clientAddress: '192.0.2.1', providerId: 'acme', modelId: 'large' };
  decision = await portcullis.store.write((db) => {
    insertCall(db, TIME, call, seenBy([other], ['acme/large']));
    const { id } = insertCall(db, TIME, call, seenBy([rule], []));
    insertCall(db, TIME, call, seenBy([], ['acme/large']));
    const counts = nextReportCounts(db);
    if (counts !== undefined) storeReportCounts(db, counts);
    return idLike(id, 'dec');
  });
});
afterEach(() => portcullis.close());

const TITLES = ['ID', 'OWNER', 'TYPE', 'VALUE', 'MODE', 'STATUS', 'DESCRIPTION'];

const shownTime = (time: string): string => time.replace('T', ' ').replace(/\.\d+Z$/, 'Z');

const cells = (text: string): string[][] =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => line.split(/ {2,}/).map((cell) => cell.trim()));

/** What is shown of the rule and the decision. */
const shown = () => [
  TITLES,
  [rule, expect.stringContaining('First gateway key'), 'allow_models', 'small', 'report', 'active', 'small only'],
  [''],
  [
    expect.stringMatching(
      `^Reporting since \\S+Z\\. 1 call would have lost at least one provider, 0 would have gained one; most recently at ${TIME}\\.$`,
    ),
  ],
  ['1 other rule in mode report is judged together with this one; on its own it may change more or fewer calls.'],
  [''],
  ['TIME', 'DECISION', 'OUTCOME', 'WOULD BE', 'REASON', 'KEY', 'MODEL'],
  [shownTime(TIME), decision, 'permit', 'deny', '-', 'First gateway key', 'large'],
];

const modeNow = async (): Promise<string> => {
  const { stdout } = await portcullis.run('rules', 'list', '--json');
  return JSON.parse(stdout).rules.find(({ id }: { id: string }) => id === rule).mode;
};

describe('portcullis rules list', () => {
  it('shows what rules in mode report would have changed, where there are any', async () => {
    const { stdout } = await portcullis.run('rules', 'list', '--wide');
    const [titles, ...rows] = cells(stdout);
    expect(titles).toEqual([...TITLES, 'OWNER ID', 'WOULD DENY', 'WOULD ALLOW', 'LAST SEEN']);
    expect(rows.map((row) => row.slice(-3))).toEqual([
      ['1', '0', shownTime(TIME)],
      ['1', '0', shownTime(TIME)],
    ]);
  });
});

describe('portcullis rules evidence', () => {
  it('shows the decisions that the rule would have changed', async () => {
    const { code, stdout, stderr } = await portcullis.run('rules', 'evidence', rule);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(cells(stdout)).toEqual(shown());
    expect(jsonOf(await portcullis.run('rules', 'evidence', rule, '--json'))).toMatchObject({
      rule: { id: rule, reportOnly: { wouldDeny: 1, wouldAllow: 0, lastSeenAt: TIME } },
      otherReportRules: 1,
      decisions: [{ id: decision, shadowOutcome: 'deny' }],
      nextCursor: null,
    });
  });

  it('refuses a page that is too long', async () => {
    const { code, stderr } = await portcullis.run('rules', 'evidence', rule, '--limit', '201');
    expect([code, stderr]).toEqual([2, expect.stringContaining('It must be a whole number from 1 to 200.')]);
  });
});

describe('portcullis rules promote', () => {
  it('shows what the rule would have changed, and changes nothing where it cannot ask', async () => {
    const { code, stdout, stderr } = await portcullis.run('rules', 'promote', rule);
    expect([code, stderr]).toEqual([1, 'portcullis: Nothing was changed. To enforce the rule, pass --yes.\n']);
    expect(cells(stdout)).toEqual(shown());
    expect(await modeNow()).toBe('report');
  });

  it('enforces the rule, and says what that newly permits', async () => {
    const { code, stdout } = await portcullis.run('rules', 'promote', rule, '--yes');
    expect(code).toBe(0);
    const lines = cells(stdout);
    expect(lines.slice(0, 8)).toEqual(shown());
    expect(lines.slice(8)).toEqual([
      [''],
      ['', ...TITLES],
      ['before', rule, expect.any(String), 'allow_models', 'small', 'report', 'active', 'small only'],
      ['after', rule, expect.any(String), 'allow_models', 'small', 'enforce', 'active', 'small only'],
      ['No new access.'],
    ]);
    expect(await modeNow()).toBe('enforce');
    const audit = await portcullis.run('audit', 'list', '--target', rule, '--action', 'rule.update', '--json');
    expect(JSON.parse(audit.stdout).entries).toMatchObject([
      { before: { mode: 'report' }, after: { mode: 'enforce' } },
    ]);

    const again = await portcullis.run('rules', 'promote', rule, '--yes');
    expect([again.code, again.stderr]).toEqual([
      1,
      'portcullis: Only an active rule in mode report can be promoted.\n',
    ]);
    expect(cells(again.stdout).at(-1)).toEqual(['Not reporting: the rule is enforced.']);
  });

  it('is refused on request where the rule extends another of its type', async () => {
    await portcullis.run('rules', 'add', '--key', 'First gateway key', 'allow_models', 'sandbox/sandbox-free');
    const paid = ['--key', 'First gateway key', 'allow_models', 'sandbox/sandbox-paid', '--mode', 'report', '--json'];
    const { id } = Object(jsonOf(await portcullis.run('rules', 'add', ...paid))).rule;
    const promotion = await portcullis.run('rules', 'promote', id, '--yes', '--fail-on-new-access');
    expect([promotion.code, promotion.stderr]).toEqual([
      1,
      'portcullis: The change is refused: it would newly permit sandbox/sandbox-paid for First gateway key.\n',
    ]);
    expect(Object(jsonOf(await portcullis.run('rules', 'promote', id, '--yes', '--json'))).change.widens.count).toBe(1);
  });

  it('prints what was shown and what was changed as JSON', async () => {
    expect(
      jsonOf(await portcullis.run('rules', 'promote', rule, '--yes', '--fail-on-new-access', '--json')),
    ).toMatchObject({
      evidence: { rule: { mode: 'report' }, decisions: [{ id: decision }] },
      change: { rule: { mode: 'enforce', reportOnly: null }, widens: { count: 0 } },
    });
  });
});

describe('asking on a terminal', () => {
  const terminal = (isTTY: boolean) => Object.assign(new PassThrough(), { isTTY });
  it.each([
    ['y\n', true, true],
    ['YES\n', true, true],
    ['\n', true, false],
    ['no\n', true, false],
    ['y\n', false, false],
  ])('%j, on a terminal: %s', async (said, isTTY, expected) => {
    const [input, output] = [terminal(isTTY), terminal(true)];
    let shownThere = '';
    output.setEncoding('utf8').on('data', (text: string) => {
      shownThere += text;
    });
    input.write(said);
    expect(await confirm('Enforce it?', input, output)).toBe(expected);
    expect(shownThere.includes('Enforce it? [y/N] ')).toBe(isTTY);
  });
});
