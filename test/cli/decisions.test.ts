import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { idLike } from '../../src/domain/id.ts';
import { build } from '../../src/store/db/sql.ts';
import { newDecision } from '../store/fixture.ts';
import { insertCall } from '../support/stored-calls.ts';
import { type CommandLine, createCommandLine, jsonOf } from './command-line.ts';

let portcullis: CommandLine;
let rule: string;
let whose: { organizationId: string; projectId: string; keyId: string; memberId: string };
/** Of the calls, oldest first: permitted, denied. */
let calls: readonly string[];

const NOW = Date.now();
const REQUEST = `req_${'7'.repeat(32)}`;

beforeEach(async () => {
  portcullis = await createCommandLine();
  const { organizationId, projectId } = portcullis.first;
  const key = await portcullis.store.read((db) =>
    db.get(build.selectFrom('keys').selectAll().where('kind', '=', 'regular')),
  );
  whose = { organizationId, projectId, keyId: key?.id ?? '', memberId: key?.createdBy ?? '' };
  const { keyId } = whose;
  const added = await portcullis.run(
    ...['rules', 'add', '--key', keyId, 'deny_models', 'large', '--description', 'nothing large', '--json'],
  );
  rule = JSON.parse(added.stdout).rule.id;
  const call = { ...whose, clientAddress: '192.0.2.1' };
  const dataText = JSON.stringify({
    subjects: { [keyId]: { enforce: { deny_models: { rules: [rule], exact: { large: [rule] }, prefixes: {} } } } },
  });
  const input = {
    action: 'chat',
    client_ip: '192.0.2.1',
    subjects: [{ scope: 'key', id: keyId }],
    candidates: [{ id: 'acme/large', names: ['large'], provider_names: ['acme'], free: true }],
  };
  const seen = { dataDigest: hash('sha256', dataText), dataText, inputJson: JSON.stringify(input) };
  const violation = { scope: 'key', effect: 'deny', kind: 'models', ruleIds: [rule], values: ['large'] };
  calls = await portcullis.store.write((db) => [
    insertCall(
      db,
      NOW - 7_200_000,
      { ...call, providerId: 'acme', modelId: 'large', cost: 18_000_000n, promptTokens: 2 },
      newDecision({ ...seen, dataDigest: hash('sha256', '{"subjects":{}}'), dataText: '{"subjects":{}}' }),
    ).id,
    insertCall(
      db,
      NOW + 3_600_000,
      {
        ...call,
        state: 'denied',
        statusCode: 403,
        errorCode: 'permission_denied',
        requestId: REQUEST,
        clientRequestId: 'nightly-7',
      },
      newDecision({
        ...seen,
        outcome: 'deny',
        reasonJson: JSON.stringify(violation),
        violationsJson: JSON.stringify([{ ...violation, candidate: 'acme/large' }]),
      }),
    ).id,
  ]);
});
afterEach(() => portcullis.close());

const decisionAt = (place: number): string => idLike(calls[place] ?? '', 'dec');

async function lines(...args: string[]): Promise<string[][]> {
  const { code, stdout, stderr } = await portcullis.run(...args);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return stdout
    .trimEnd()
    .split('\n')
    .map((line) => line.split(/ {2,}/).map((cell) => cell.trim()));
}

describe('portcullis decisions list', () => {
  it('lists decisions, newest first, and says where the list goes on', async () => {
    const titles = ['TIME', 'DECISION', 'OUTCOME', 'REASON', 'KEY', 'MODEL'];
    const rows = [
      [expect.any(String), decisionAt(1), 'deny', 'deny_models', 'First gateway key', 'large'],
      [expect.any(String), decisionAt(0), 'permit', '-', 'First gateway key', 'large'],
    ];
    expect(await lines('decisions', 'list')).toEqual([titles, ...rows]);
    const page = await lines('decisions', 'list', '--limit', '1');
    expect(page).toEqual([titles, rows[0], [''], [expect.stringMatching(/^There are more: --cursor \w+$/)]]);
    const cursor = page[3]?.[0]?.split(' ').at(-1) ?? '';
    expect(await lines('decisions', 'list', '--limit', '1', '--cursor', cursor)).toEqual([titles, rows[1]]);
    expect(await lines('decisions', 'list', '--since', '1h')).toEqual([titles, rows[0]]);
  });

  it.each([
    ['--key', () => 'First gateway key', 2],
    ['--member', () => 'owner@localhost', 2],
    ['--address', () => '192.0.2.1', 2],
    ['--address', () => '192.0.0.0/16', 2],
    ['--address', () => '10.0.0.0/8', 0],
    ['--provider', () => 'acme', 1],
    ['--outcome', () => 'deny', 1],
    ['--reason', () => 'deny_models', 1],
    ['--rule', () => rule, 1],
    ['--request', () => REQUEST, 1],
    ['--request', () => 'nightly-7', 1],
    ['--model', () => 'small', 0],
  ])('searches by %s', async (option, value, count) => {
    const found = jsonOf(await portcullis.run('decisions', 'list', option, value(), '--json'));
    expect(found).toEqual({ decisions: Array(count).fill(expect.anything()), nextCursor: null });
  });

  it('refuses two begins', async () => {
    const { code, stderr } = await portcullis.run('decisions', 'list', '--since', '1h', '--from', '2026-01-01');
    expect({ code, stderr }).toEqual({ code: 2, stderr: 'portcullis: Choose --since or --from.\n' });
  });
});

describe('portcullis decisions show', () => {
  it('says why, by the id of the decision, the call, the request, or the one of the caller', async () => {
    const { keyId, memberId, projectId } = whose;
    const shown = await lines('decisions', 'show', decisionAt(1));
    expect(shown).toEqual([
      [expect.stringMatching(/^20\S+Z: denied \(policy b{12}\.3\)$/)],
      [`Access denied: model not allowed: large is denied by rule ${rule} (nothing large).`],
      [''],
      ['asked', 'chat with large'],
      ['from', '192.0.2.1'],
      ['key', `First gateway key (${keyId})`],
      ['owner', `owner@localhost (${memberId})`],
      ['project', `Default (${projectId})`],
      ['answer', '403 permission_denied'],
      ['candidates', 'acme/large'],
      ['decision', decisionAt(1)],
      ['call', calls[1]],
      ['request', REQUEST],
      ["caller's id", 'nightly-7'],
      [''],
      ['CANDIDATE', 'SCOPE', 'VIOLATES', 'BY', 'RULES'],
      ['acme/large', 'key', 'deny_models', 'large', `${rule} (nothing large)`],
      [''],
      ['RULE', 'SCOPE', 'TYPE', 'MODE', 'DESCRIPTION'],
      [rule, 'key', 'deny_models', 'enforce', 'nothing large'],
    ]);
    for (const id of [calls[1] ?? '', REQUEST, 'nightly-7']) {
      expect(await lines('decisions', 'show', id)).toEqual(shown);
    }
  });

  it('fails for what is not there', async () => {
    const { code, stdout, stderr } = await portcullis.run('decisions', 'show', 'nightly-8');
    expect({ code, stdout, stderr }).toEqual({
      code: 1,
      stdout: '',
      stderr: 'portcullis: There is no call or request with the id "nightly-8".\n',
    });
  });
});

describe('portcullis decisions export', () => {
  it("writes lines of OPA's decision log, the oldest first", async () => {
    const { code, stdout, stderr } = await portcullis.run('decisions', 'export', '--to', '2099-01-01');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const entries = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    const { organizationId, projectId, keyId, memberId } = whose;
    expect(entries.map(({ decision_id: id }) => id)).toEqual([decisionAt(0), decisionAt(1)]);
    expect(entries.map(({ result }) => result.permitted)).toEqual([['acme/large'], []]);
    expect(entries[1]).toEqual({
      labels: { app: 'portcullis', version: expect.any(String) },
      decision_id: decisionAt(1),
      bundles: { policy: { revision: 'b'.repeat(64) } },
      path: 'gateway/authz/decision',
      input: expect.objectContaining({ action: 'chat', client_ip: '192.0.2.1' }),
      result: {
        permitted: [],
        violations: [
          {
            scope: 'key',
            effect: 'deny',
            kind: 'models',
            ruleIds: [rule],
            values: ['large'],
            candidate: 'acme/large',
          },
        ],
      },
      requested_by: '192.0.2.1',
      timestamp: new Date(NOW + 3_600_000).toISOString(),
      portcullis: {
        organization_id: organizationId,
        project_id: projectId,
        member_id: memberId,
        key_id: keyId,
        call_id: calls[1],
        request_id: REQUEST,
        client_request_id: 'nightly-7',
        requested_model: 'large',
        outcome: 'deny',
        reason: 'deny_models',
        rule_revision: 3,
        data_digest: expect.stringMatching(/^[0-9a-f]{64}$/),
        provider: null,
        model: null,
        status_code: 403,
        error_code: 'permission_denied',
        cost: '0',
      },
    });
    const exported = async (...args: string[]): Promise<string> =>
      (await portcullis.run('decisions', 'export', '--to', '2099-01-01', ...args)).stdout;
    const [permitted, denied] = stdout.split('\n').map((line) => `${line}\n`);
    expect(await exported('--since', '1h')).toBe(denied);
    expect(await exported('--provider', 'acme', '--address', '192.0.2.0/24')).toBe(permitted);
    expect(await exported('--rule', rule, '--outcome', 'deny')).toBe(denied);
    expect(await exported('--model', 'small')).toBe('');
  });
});

describe('portcullis policy fixture', () => {
  const FIXTURE = ['policy', 'fixture', 'nightly-7', '-o', 'nightly.yaml'] as const;

  it('writes a decision as a fixture that passes under the rules of today, and under those of the database', async () => {
    expect(await portcullis.run(...FIXTURE)).toEqual({
      code: 0,
      stdout: `Wrote the fixture of ${decisionAt(1)} to nightly.yaml.\n`,
      stderr: '',
    });
    expect(readFileSync(path.join(portcullis.folder, 'nightly.yaml'), 'utf8').split('\n').slice(1)).toEqual([
      `name: chat with large is decided as ${decisionAt(1)} was`,
      expect.stringMatching(/^description: What was decided on .*, by the rules that bind the key today\.$/),
      'given:',
      '  catalog:',
      '    models:',
      '      large:',
      '        providers:',
      '          acme: {free: true}',
      '  members:',
      '    owner@localhost: {}',
      '  keys:',
      `    ${whose.keyId}:`,
      '      owner: owner@localhost',
      '      rules:',
      `        ${rule}:`,
      '          deny_models: [large]',
      'requests:',
      '  model: [acme/large]',
      '  address: 192.0.2.1',
      'expect:',
      '  - model: acme/large',
      '    deny: key deny_models',
      `    rules: [${rule}]`,
      '',
    ]);
    const { code, stdout } = await portcullis.run('policy', 'test', 'nightly.yaml');
    expect([code, stdout]).toEqual([0, expect.stringContaining('1 fixture: 1 passed; 1 request')]);
    expect((await portcullis.run('policy', 'test', 'nightly.yaml', '--database', portcullis.folder)).code).toBe(0);
  });

  it('warns when the rules of today decide otherwise, and the fixture then fails', async () => {
    await portcullis.run('rules', 'remove', rule);
    expect(await portcullis.run(...FIXTURE)).toEqual({
      code: 0,
      stdout: `Wrote the fixture of ${decisionAt(1)} to nightly.yaml.\n`,
      stderr: `portcullis: Today's rules decide otherwise, so the fixture fails until they decide as then: acme/large.\n`,
    });
    expect((await portcullis.run('policy', 'test', 'nightly.yaml')).code).toBe(1);
  });

  it('refuses an id that names nothing, and a decision whose key is gone', async () => {
    expect(await portcullis.run('policy', 'fixture', 'nightly-9')).toEqual({
      code: 1,
      stdout: '',
      stderr: 'portcullis: There is no call or request with the id "nightly-9".\n',
    });
    await portcullis.run('keys', 'delete', whose.keyId);
    expect(await portcullis.run('policy', 'fixture', decisionAt(1))).toEqual({
      code: 1,
      stdout: '',
      stderr: `portcullis: The key of this decision, ${whose.keyId}, can no longer call the gateway.\n`,
    });
  });
});

describe('portcullis calls', () => {
  it('lists calls, and shows one', async () => {
    const rows = await lines('calls', 'list', '--outcome', 'permit', '--wide');
    expect(rows[1]?.slice(1)).toEqual([
      ...[
        calls[0],
        'settled',
        'First gateway key',
        'large',
        '-',
        '0.000018',
        '200',
        'acme/large',
        '2',
        '0',
        whose.keyId,
      ],
    ]);
    const shown = await lines('calls', 'show', calls[0] ?? '');
    expect(shown).toEqual(
      expect.arrayContaining([
        ['state', 'settled'],
        ['served by', 'acme/large'],
        ['tokens', '2 in, 0 out'],
        ['cost', '0.000018'],
        ['decision', decisionAt(0)],
      ]),
    );
  });
});
