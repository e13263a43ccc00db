import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CommandLine, createCommandLine, jsonOf } from './command-line.ts';

let portcullis: CommandLine;
let root: string;

beforeAll(async () => {
  root = mkdtempSync(path.join(tmpdir(), 'portcullis-'));
  portcullis = await createCommandLine();
});
afterAll(() => {
  portcullis.close();
  rmSync(root, { recursive: true });
});

const PEPPER = 'ab'.repeat(32);

describe('secrets list', () => {
  it('shows ids and how many keys use each, never a secret', async () => {
    const { peppers, encryptionKeys, signingKey } = portcullis.secrets;
    const { code, stdout, stderr } = await portcullis.run('secrets', 'list');
    expect([code, stderr, stdout.split('\n')]).toEqual([
      0,
      '',
      [
        'SECRET          ID        STATUS   KEYS',
        `pepper          ${peppers[0].id}  current  2`,
        `encryption key  ${encryptionKeys[0].id}  current  0`,
        `signing key     ${signingKey.id}  current  -`,
        '',
      ],
    ]);
  });

  it('shows what is needed and not there', async () => {
    const listed = jsonOf(await portcullis.runWith({ PEPPER }, 'secrets', 'list', '--json'));
    expect(listed).toMatchObject({
      secrets: [
        { kind: 'pepper', status: 'current', keys: 0 },
        { kind: 'pepper', id: portcullis.secrets.peppers[0].id, status: 'missing', keys: 2 },
        { kind: 'encryption key' },
        { kind: 'signing key' },
      ],
    });
  });
});

it('a pepper of the environment is not rotated here, and it is said what to do', async () => {
  const { code, stderr } = await portcullis.runWith({ PEPPER }, 'secrets', 'rotate-pepper');
  expect([code, stderr]).toEqual([
    1,
    'portcullis: PEPPER is given by the environment: put a new one before it, as PEPPER=<new>,<old>, and start or reload the server.\n',
  ]);
});

describe('backup and restore', () => {
  it('say what they did, and what they could not', async () => {
    const folder = path.join(root, 'backup');
    const made = await portcullis.runWith({ PEPPER }, 'backup', folder, '--without-secrets');
    expect([made.code, made.stdout, made.stderr]).toEqual([
      0,
      expect.stringMatching(`^Backed up to ${folder}: \\d+ pages, \\d+ bytes\\.\n$`),
      `portcullis: keys need secrets that are missing, and cannot be used: pepper ${portcullis.secrets.peppers[0].id} (2).\n` +
        'portcullis: PEPPER is given by the environment and is not in the backup: keep it elsewhere.\n',
    ]);
    expect(readdirSync(folder).sort()).toEqual(['manifest.json', 'portcullis.sqlite']);

    const again = await portcullis.run('backup', folder);
    expect([again.code, again.stderr]).toEqual([
      1,
      `portcullis: ${folder} is not empty: a backup overwrites nothing.\n`,
    ]);
    const refused = await portcullis.run('restore', folder);
    expect([refused.code, refused.stderr]).toEqual([
      1,
      `portcullis: There is a database at ${portcullis.folder}/portcullis.sqlite: take another DATA_DIR, or move it aside with --force.\n`,
    ]);
  });

  it('print JSON', async () => {
    const folder = path.join(root, 'json');
    const backup = { format: 1, secrets: true, sha256: expect.stringMatching(/^[0-9a-f]{64}$/) };
    expect(jsonOf(await portcullis.run('backup', folder, '--json'))).toMatchObject({ backup });
    const DATA_DIR = path.join(root, 'fresh', 'data');
    expect(jsonOf(await portcullis.runWith({ DATA_DIR }, 'restore', folder, '--json'))).toMatchObject({
      backup,
      replaced: null,
    });
    expect(existsSync(path.join(DATA_DIR, 'portcullis.sqlite'))).toBe(true);
  });
});
