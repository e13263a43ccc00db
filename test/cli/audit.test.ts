import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createHeadWriter } from '../../src/admin/audit/audit-head.ts';
import { changeOrganization } from '../../src/admin/tenants/organizations.ts';
import { type CommandLine, createCommandLine, jsonOf } from './command-line.ts';

let portcullis: CommandLine;

beforeEach(async () => {
  portcullis = await createCommandLine();
});
afterEach(() => portcullis.close());

/** Changes the organization's name as often as wanted. */
const rename = (...names: string[]) =>
  portcullis.store.write((db, now) => {
    const actor = { kind: 'cli', organizationId: portcullis.first.organizationId } as const;
    for (const name of names) changeOrganization(db, actor, { name }, now);
  });

/** What someone can do who has the file and SQLite. */
const tamper = (...statements: string[]) =>
  portcullis.store.write(({ connection }) => {
    for (const trigger of ['is_never_updated', 'is_never_deleted', 'is_only_appended_to']) {
      connection.exec(`DROP TRIGGER audit_${trigger}`);
    }
    for (const statement of statements) connection.exec(statement);
  });

interface Verdict {
  readonly holds: boolean;
  readonly entries: number;
  readonly head: { readonly seq: number; readonly hmac: string } | null;
  readonly fault: string | null;
}

async function verify(...args: string[]) {
  const { code, stdout, stderr } = await portcullis.run('audit', 'verify', '--json', ...args);
  const verdict: Verdict = JSON.parse(stdout);
  return { code, stderr, ...verdict };
}

const BY = `${userInfo().username} on the command line`;

describe('portcullis audit list', () => {
  it('shows what the first start made, and what was changed since, newest first', async () => {
    await rename('New');
    await portcullis.run('keys', 'disable', 'First gateway key');
    const { code, stdout, stderr } = await portcullis.run('audit', 'list');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const rows = stdout.split('\n').map((line) => line.split(/ {2,}/));
    expect(rows[1]?.[4]).toMatch(/^First gateway key$/);
    expect(rows.map((cells) => [cells[0]?.trim(), cells[2], cells[3], cells[5]])).toEqual([
      ['SEQ', 'BY', 'ACTION', 'CHANGED'],
      ['8', BY, 'key.disable', 'status, state'],
      ['7', BY, 'organization.update', 'name'],
      ['6', BY, 'sign_in_link.create', '-'],
      ['5', BY, 'key.create', '-'],
      ['4', BY, 'master_key.create', '-'],
      ['3', BY, 'member.create', '-'],
      ['2', BY, 'project.create', '-'],
      ['1', BY, 'organization.create', '-'],
      ['', undefined, undefined, undefined],
    ]);
  });

  it('shows those that are asked for, over as many pages as it takes', async () => {
    await rename(...Array.from({ length: 230 }, (_, index) => `${index}`));
    const list = async (...args: string[]) => Object(jsonOf(await portcullis.run('audit', 'list', '--json', ...args)));
    const updates = await list('--action', 'organization.update', '--limit', '210');
    expect([updates.entries.length, updates.entries[0].after.name, updates.entries[209].after.name]).toEqual([
      210,
      '229',
      '20',
    ]);
    expect(updates.nextCursor).toEqual(expect.any(String));
    expect((await list()).entries).toHaveLength(50);
    const { organizationId, projectId } = portcullis.first;
    const made = await list('--target', projectId, '--from', '2026-01-01');
    expect(made).toMatchObject({
      entries: [{ action: 'project.create', target: { id: projectId } }],
      nextCursor: null,
    });
    expect((await list('--target', organizationId, '--to', '2026-01-01')).entries).toEqual([]);
  });

  it('says what it cannot read', async () => {
    expect(await portcullis.run('audit', 'list', '--from', 'yesterday')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('must be a date such as 2026-01-31'),
    });
    expect(await portcullis.run('audit', 'list', '--limit', '0')).toMatchObject({ code: 2 });
  });
});

describe('portcullis audit verify', () => {
  it('says that the log is intact, and its head', async () => {
    const { code, head, entries, holds, fault } = await verify();
    expect({ code, entries, holds, fault }).toEqual({ code: 0, entries: 6, holds: true, fault: null });
    expect(head).toEqual({ seq: 6, hmac: expect.stringMatching(/^[0-9a-f]{64}$/) });
    expect(await portcullis.run('audit', 'verify')).toEqual({
      code: 0,
      stdout: `The audit log is intact: 6 entries.\nHead: ${head?.hmac}\n`,
      stderr: '',
    });
  });

  it.each([
    ['an altered field', `UPDATE audit SET afterJson = '{}' WHERE seq = 3`, 'entry 3 is not what was written there'],
    ['a deleted entry', 'DELETE FROM audit WHERE seq = 2', 'entry 2 is missing'],
    [
      'entries that changed places',
      'UPDATE audit SET seq = 9 WHERE seq = 2; UPDATE audit SET seq = 2 WHERE seq = 4; UPDATE audit SET seq = 4 WHERE seq = 9',
      'entry 2 is not what was written there',
    ],
  ])('finds %s, and exits with 1', async (_, statement, fault) => {
    await tamper(statement);
    expect(await verify()).toMatchObject({
      code: 1,
      holds: false,
      fault,
      stderr: `portcullis: The audit log is not intact: ${fault}.\n`,
    });
  });

  it('finds with a head that was noted that entries were taken away at the end, or others put in their place', async () => {
    await rename('New');
    const noted = (await verify()).head?.hmac ?? '';
    await rename('Newer');
    expect(await verify('--head', noted)).toMatchObject({ code: 0, holds: true, entries: 8 });

    await tamper('DELETE FROM audit WHERE seq > 6');
    // Without a head, what they had changed gives it away.
    const faults = [{ kind: 'edited', table: 'organizations' }];
    expect(await verify()).toMatchObject({ code: 1, holds: false, fault: null, entries: 6, faults });
    const fault = 'the noted head is not in it, so that entries were taken away at the end: it ends with entry 6';
    expect(await verify('--head', noted)).toMatchObject({ code: 1, holds: false, fault });

    await rename('Other', 'Another');
    expect(await verify('--head', noted)).toMatchObject({ code: 1, holds: false, entries: 8 });
    await portcullis.store.write(({ connection }) => connection.exec('DELETE FROM audit'));
    expect(await verify('--head', noted)).toMatchObject({
      code: 1,
      head: null,
      fault: expect.stringContaining('empty'),
    });
    expect(await portcullis.run('audit', 'verify')).toMatchObject({
      code: 0,
      stdout: 'The audit log is intact: it is empty.\n',
    });
  });

  it('finds by AUDIT_HEAD_FILE, which the server writes, that the log was shortened or emptied', async () => {
    const file = path.join(portcullis.folder, 'head.json');
    const warnings: unknown[] = [];
    const telemetry = { warn: (...args: unknown[]) => void warnings.push(args) };
    const writeHead = createHeadWriter({ file, store: portcullis.store, telemetry });
    const verifyWithFile = () => portcullis.runWith({ AUDIT_HEAD_FILE: file }, 'audit', 'verify');
    expect(await verifyWithFile()).toMatchObject({ code: 0 }); // There is no file yet.
    await rename('New');
    await writeHead();
    const { head } = await verify();
    expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual(head);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    await rename('Newer');
    expect([await verifyWithFile(), await verify('--head', file)]).toMatchObject([{ code: 0 }, { code: 0 }]);
    await writeHead();
    const kept = readFileSync(file, 'utf8');

    await tamper('DELETE FROM audit');
    expect(await verifyWithFile()).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(
        'the noted head is not in it, so that entries were taken away at the end: the log is empty',
      ),
    });
    await rename('Newest');
    await writeHead();
    await writeHead();
    expect(readFileSync(file, 'utf8')).toBe(kept);
    expect(warnings).toEqual([
      [
        'the audit log does not hold the head in AUDIT_HEAD_FILE: entries were taken away; the file stays',
        { file, seq: 8 },
      ],
    ]);
    writeFileSync(file, 'something else');
    expect(await verifyWithFile()).toMatchObject({
      code: 1,
      stderr: `portcullis: AUDIT_HEAD_FILE: ${file} does not hold the head of an audit log.\n`,
    });
  });

  it('holds nothing for true that was written under another key', async () => {
    const { folder } = portcullis;
    const file = `${folder}/secrets.json`;
    const secrets = JSON.parse(readFileSync(file, 'utf8'));
    writeFileSync(file, JSON.stringify({ ...secrets, signingKey: Buffer.alloc(32, 1).toString('base64url') }));
    expect(await verify()).toMatchObject({
      code: 1,
      fault: 'entry 1 is not what was written there, or was written under another signing key',
    });
  });

  it('wants a whole head', async () => {
    const { code, stderr } = await portcullis.run('audit', 'verify', '--head', 'abc');
    expect([code, stderr]).toEqual([2, expect.stringContaining('It must be the 64 digits that verify printed')]);
  });
});
