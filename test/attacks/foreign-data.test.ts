// Files of a data directory that do not belong together, or are damaged: every start and every command refuses them in one line that
// names the file and says what to do, and leaves all of them as they were.
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createProviderKey } from '../../src/admin/providers/provider-keys.ts';
import { firstRun } from '../../src/admin/sign-in/sign-in-links.ts';
import { createCatalog } from '../../src/catalog/catalog.ts';
import { systemClock } from '../../src/domain/time.ts';
import { checkDataDir } from '../../src/store/backup/check-data-dir.ts';
import { databasePath } from '../../src/store/db/data-dir.ts';
import {
  loadSecrets,
  readSecretsFile,
  type SecretsFile,
  secretsPath,
  writeSecretsFile,
} from '../../src/store/secrets/secrets.ts';
import { createStore } from '../../src/store/store.ts';
import { type Ended, portcullis, serve } from '../process/running.ts';

const PORTS = { PORT: '0', MANAGEMENT_PORT: '0', ACCESS_LOG: 'off' };
const OTHER_KEY = 'ab'.repeat(32);
const PAGE = 4096;

let root: string;
/** Two installations after their first runs, each with a provider key. Nobody has them open. */
let original: string;
let theirs: string;
/** A copy of the original, to be spoilt. */
let dataDir: string;

async function makeInstallation(folder: string): Promise<void> {
  mkdirSync(folder, { mode: 0o700 });
  const { peppers, encryptionKeys, signingKey } = loadSecrets(folder, { create: true });
  const options = { path: databasePath(folder), clock: systemClock, create: true, auditKey: signingKey.key };
  const store = createStore(options);
  const catalog = createCatalog({ sandbox: true, upstreams: [], clock: systemClock });
  await store.write((db, now) => {
    const first = firstRun(db, peppers[0], now);
    const actor = { kind: 'cli', organizationId: first?.organizationId ?? '' } as const;
    const body = { provider: 'openai', label: 'Main', token: 'sk-of-a-customer-0123456789' };
    createProviderKey(db, actor, body, { now, catalog, encryptionKey: encryptionKeys[0], allowPrivateUpstreams: [] });
  });
  store.close();
}

beforeAll(async () => {
  root = mkdtempSync(path.join(tmpdir(), 'portcullis-'));
  original = path.join(root, 'original');
  theirs = path.join(root, 'theirs');
  await makeInstallation(original);
  await makeInstallation(theirs);
});
afterAll(() => rmSync(root, { recursive: true }));

beforeEach(() => {
  dataDir = mkdtempSync(path.join(root, 'data-'));
  cpSync(original, dataDir, { recursive: true });
});

/** Every file below a folder, with the digest of what is in it. */
const filesIn = (folder: string): Record<string, string> =>
  Object.fromEntries(
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .map((name): [string, string] => [name, path.join(folder, name)])
      .filter(([, file]) => statSync(file, { throwIfNoEntry: false })?.isFile())
      .map(([name, file]) => [name, createHash('sha256').update(readFileSync(file)).digest('hex')]),
  );

type Variables = Readonly<Record<string, string>>;

const run = (args: readonly string[], variables: Variables = {}): Promise<Ended> =>
  portcullis(args, { ...PORTS, DATA_DIR: dataDir, ...variables });

/** Each command ends with this one line, and no file is made, changed or removed. They run at once. */
async function expectRefusals(
  commands: readonly (readonly string[])[],
  line: string | RegExp,
  variables: Variables = {},
): Promise<void> {
  const before = filesIn(dataDir);
  const stderr = typeof line === 'string' ? `portcullis: ${line}\n` : expect.stringMatching(line);
  const ended = await Promise.all(commands.map((args) => run(args, variables)));
  for (const [index, { signal: _, ...end }] of ended.entries()) {
    expect(end, commands[index]?.join(' ')).toEqual({ code: 1, stdout: '', stderr });
    expect(end.stderr.split('\n')).toHaveLength(2);
  }
  expect(filesIn(dataDir)).toEqual(before);
}

async function expectServed(variables: Variables = {}): Promise<void> {
  const server = await serve({ ...variables, DATA_DIR: dataDir });
  server.child.kill('SIGTERM');
  expect((await server.ended).code).toBe(0);
}

function changeSecrets(change: (mine: SecretsFile, other: SecretsFile) => SecretsFile): void {
  const mine = readSecretsFile(secretsPath(dataDir));
  writeSecretsFile(secretsPath(dataDir), change(mine, readSecretsFile(secretsPath(theirs))));
}

const REMEDY = 'Restore a backup (portcullis restore <folder> --force), or take another DATA_DIR.';

describe("another installation's secrets.json", () => {
  it.each([
    [
      'reads',
      [
        ['keys', 'list'],
        ['rules', 'list'],
        ['provider-keys', 'list'],
        ['master-keys', 'list'],
        ['organizations', 'list'],
        ['audit', 'list'],
        ['usage'],
        ['access', '--all'],
        ['policy', 'lint'],
        ['secrets', 'list'],
      ],
    ],
    [
      'writes',
      [
        ['serve'],
        ['keys', 'create', '--description', 'New'],
        ['rules', 'add', '--organization', 'deny_models', 'x'],
        ['members', 'invite', 'ada@example.com'],
        ['provider-keys', 'remove', 'Main'],
        ['organizations', 'create', 'New', '--owner', 'ada@example.com'],
        ['secrets', 'rotate-pepper'],
        ['secrets', 'rotate-encryption-key'],
        ['backup', 'ITS_FOLDER/backup'],
        ['backup', 'ITS_FOLDER/other', '--without-secrets'],
      ],
    ],
  ])(
    'is refused by every command that %s',
    async (_, commands) => {
      copyFileSync(secretsPath(theirs), secretsPath(dataDir));
      await expectRefusals(
        commands.map((args) => args.map((each) => each.replace('ITS_FOLDER', dataDir))),
        `${secretsPath(dataDir)} does not belong to ${databasePath(dataDir)}, whose audit log was written under another signing key: put back the file that does.`,
      );
    },
    60_000,
  );

  it("is refused next to another installation's database, too", async () => {
    copyFileSync(databasePath(theirs), databasePath(dataDir));
    await expectRefusals([['serve']], /secrets\.json does not belong to \S+portcullis\.sqlite/);
  });

  it('is refused by a restore, which leaves what is there', async () => {
    const backup = path.join(root, `backup-${path.basename(dataDir)}`);
    expect((await run(['backup', backup, '--without-secrets'])).code).toBe(0);
    rmSync(databasePath(dataDir));
    copyFileSync(secretsPath(theirs), secretsPath(dataDir));
    writeFileSync(path.join(dataDir, 'lock.sqlite'), '');
    await expectRefusals([['restore', backup]], /portcullis\.sqlite is of another installation/);
  });
});

describe('secrets that do not open what is stored', () => {
  const NEEDS = /^portcullis: \S+portcullis\.sqlite needs secrets that are not there: /;

  it.each([
    ['peppers', 'pepper [0-9a-f]{8} \\(2\\)\\. Put the pepper back into \\S+secrets\\.json'],
    ['encryptionKey', 'encryption key [0-9a-f]{8} \\(1\\)\\. Put the encryption key back into \\S+secrets\\.json'],
  ] as const)('are refused: other %s', async (kind, words) => {
    changeSecrets((mine, other) => ({ ...mine, [kind]: other[kind] }));
    const commands = [['serve'], ['keys', 'list'], ['backup', path.join(dataDir, 'backup')]];
    await expectRefusals(commands, new RegExp(NEEDS.source + words));
  });

  it.each([
    ['PEPPER', 'pepper [0-9a-f]{8} \\(2\\)\\. Put the pepper back into PEPPER'],
    ['ENCRYPTION_KEY', 'encryption key [0-9a-f]{8} \\(1\\)\\. Put the encryption key back into ENCRYPTION_KEY'],
  ])('are refused: another %s in the environment', async (variable, words) => {
    await expectRefusals([['serve'], ['keys', 'list']], new RegExp(NEEDS.source + words), { [variable]: OTHER_KEY });
  });

  it('are refused: the file as it was before a rotation', async () => {
    const before = readFileSync(secretsPath(dataDir));
    expect((await run(['secrets', 'rotate-pepper'])).code).toBe(0);
    expect((await run(['keys', 'create', '--description', 'New'])).code).toBe(0);
    expect((await run(['secrets', 'rotate-encryption-key'])).code).toBe(0);
    writeFileSync(secretsPath(dataDir), before);
    await expectRefusals([['serve']], /pepper [0-9a-f]{8} \(1\), encryption key [0-9a-f]{8} \(1\)\. /);
  });

  it.each([
    ['empty', '', 'is not JSON.'],
    ['cut off', '{"peppers":["', 'is not JSON.'],
    ['of something else', '{"name":"x"}', "does not hold the server's secrets."],
    ['with a short key', '{"peppers":["YQ"],"encryptionKey":"YQ","signingKey":"YQ"}', 'must be 32 bytes in base64url.'],
  ])('are refused: a file that is %s', async (_, text, fault) => {
    writeFileSync(secretsPath(dataDir), text);
    const line = new RegExp(
      `secrets\\.json.* ${fault} Put back the file that belongs to \\S+portcullis\\.sqlite\\.\n$`,
    );
    await expectRefusals([['serve'], ['keys', 'list']], line);
  });

  it('are no longer missed once they were given up', async () => {
    const { peppers } = loadSecrets(dataDir, { create: false });
    changeSecrets((mine, other) => ({ ...mine, peppers: other.peppers }));
    expect((await run(['secrets', 'drop-pepper', peppers[0].id])).stderr).toContain(
      `Pepper ${peppers[0].id} is still in use by keys: 2.`,
    );
    const dropped = await run(['secrets', 'drop-pepper', peppers[0].id, '--force']);
    expect(dropped).toMatchObject({ code: 0, stdout: `Dropped pepper ${peppers[0].id}. Keys lost with it: 2.\n` });
    await expectServed();
  });

  it('are no longer missed once what they sealed has new tokens', async () => {
    changeSecrets((mine, other) => ({ ...mine, encryptionKey: other.encryptionKey }));
    const update = ['provider-keys', 'update', 'Main', '--token-env', 'TOKEN'];
    expect(await run(update, { TOKEN: 'sk-new-0123456789' })).toMatchObject({ code: 0, stderr: '' });
    await expectServed();
  });
});

/** Makes a file that holds a database of something else. */
function writeOther(file: string, ...statements: readonly string[]): void {
  rmSync(file);
  const other = new BetterSqlite3(file);
  for (const statement of statements) other.exec(statement);
  other.close();
}

const sizeOf = (file: string): number => statSync(file).size;

function overwrite(file: string, from: number, to: number): void {
  const bytes = readFileSync(file);
  bytes.fill(7, from, to);
  writeFileSync(file, bytes);
}

describe('a database that is none, or not whole, next to secrets', () => {
  const check = () => checkDataDir({ dataDir, given: { peppers: [], encryptionKeys: [] }, now: Date.now() });
  const OTHER = 'FILE is not a database of Portcullis: take another DATA_DIR, or move the file away.';

  it.each([
    ['empty', (file: string) => truncateSync(file), `FILE is empty: it holds no database. ${REMEDY}`],
    [
      'cut to two pages',
      (file: string) => truncateSync(file, 2 * PAGE),
      `FILE: database disk image is malformed. ${REMEDY}`,
    ],
    [
      'shorter by one page',
      (file: string) => truncateSync(file, sizeOf(file) - PAGE),
      `FILE: database disk image is malformed. ${REMEDY}`,
    ],
    ['cut to half a page', (file: string) => truncateSync(file, 2000), `FILE: … ${REMEDY}`],
    [
      'text',
      (file: string) => writeFileSync(file, 'No database. '.repeat(500)),
      `FILE: file is not a database. ${REMEDY}`,
    ],
    ['short text', (file: string) => writeFileSync(file, 'No database.'), `FILE: … ${REMEDY}`],
    ['damaged in its first page', (file: string) => overwrite(file, 100, PAGE), `FILE: … ${REMEDY}`],
    ['damaged in a later page', (file: string) => overwrite(file, 5 * PAGE, 6 * PAGE), `FILE is damaged: … ${REMEDY}`],
    ["another program's", (file: string) => writeOther(file, 'CREATE TABLE notes (text TEXT)'), OTHER],
    [
      "another program's in WAL mode",
      (file: string) => writeOther(file, 'PRAGMA journal_mode = WAL', 'CREATE TABLE notes (text TEXT)'),
      OTHER,
    ],
    [
      "another program's, that counts its versions as we do",
      (file: string) => writeOther(file, 'CREATE TABLE schema_version (version INTEGER PRIMARY KEY, digest TEXT)'),
      OTHER,
    ],
    ['without a table', (file: string) => writeOther(file, 'CREATE TABLE t (a)', 'DROP TABLE t'), OTHER],
    [
      'of a version before 0.2.0',
      (file: string) => {
        const db = new BetterSqlite3(file);
        db.exec("UPDATE schema_version SET digest = 'another'");
        db.close();
      },
      'FILE was made by a version of Portcullis before 0.2.0, or by an unreleased one, …',
    ],
    [
      'of a later version',
      (file: string) => {
        const db = new BetterSqlite3(file);
        for (let version = 2; version < 100; version += 1) {
          db.prepare("INSERT OR IGNORE INTO schema_version VALUES (?, 0, '')").run(version);
        }
        db.close();
      },
      'FILE has schema version 99, this version of Portcullis knows …: use the newer version that made it.',
    ],
  ])('is refused: %s', (_, spoil, expected) => {
    const file = databasePath(dataDir);
    spoil(file);
    const before = filesIn(dataDir);
    const line = expected.replace('FILE', file).replaceAll(/[().]/g, '\\$&').replace('…', '.*');
    expect(check).toThrow(new RegExp(`^${line}$`));
    expect(filesIn(dataDir)).toEqual(before);
  });

  it('is refused by all that opens it', async () => {
    truncateSync(databasePath(dataDir));
    await expectRefusals(
      [
        ['serve'],
        ['keys', 'list'],
        ['keys', 'create'],
        ['access', '--all'],
        ['audit', 'verify'],
        ['backup', path.join(dataDir, 'backup')],
        ['secrets', 'list'],
        ['secrets', 'rotate-pepper'],
      ],
      `${databasePath(dataDir)} is empty: it holds no database. ${REMEDY}`,
    );
  }, 60_000);

  it('is refused where a page is damaged, before anything reads it', async () => {
    overwrite(databasePath(dataDir), 5 * PAGE, 6 * PAGE);
    await expectRefusals([['serve'], ['keys', 'list']], /portcullis\.sqlite is damaged: .* Restore a backup/);
  });

  it('is refused as a source of a comparison, too', async () => {
    truncateSync(databasePath(dataDir), 2 * PAGE);
    await expectRefusals([['policy', 'diff', dataDir, theirs]], /disk image is malformed\. Restore a backup/, {
      DATA_DIR: theirs,
    });
  });

  it('a log without its database is not begun again', async () => {
    const file = databasePath(dataDir);
    rmSync(file);
    writeFileSync(`${file}-wal`, 'what was committed last');
    await expectRefusals(
      [['serve']],
      `${file}-wal is there, and the database that it belongs to is not: put ${file} back, or move the log away.`,
    );
  });

  it('that is lost is not begun again next to its secrets, until an operator moves them away', async () => {
    const [file, secrets] = [databasePath(dataDir), secretsPath(dataDir)];
    for (const lost of [file, `${file}-wal`, `${file}-shm`]) rmSync(lost, { force: true });
    writeFileSync(path.join(dataDir, 'lock.sqlite'), '');
    await expectRefusals(
      [['serve']],
      `${file} is missing, and ${secrets} belongs to one: put the database back (portcullis restore <folder>), or move ${secrets} away to begin with a new database, in which no key of the old one is valid.`,
    );
    rmSync(secrets);
    const server = await serve({ DATA_DIR: dataDir });
    expect(server.key).toBeDefined();
  });

  it.each(['portcullis.sqlite', 'secrets.json'])('a link %s that leads nowhere is not followed', async (name) => {
    const link = path.join(dataDir, name);
    rmSync(link);
    symlinkSync('../elsewhere', link);
    await expectRefusals(
      [['serve'], ['keys', 'list']],
      `${link} is a link to ../elsewhere, which is not there: put back what it leads to, or remove the link.`,
    );
    expect(readdirSync(root)).not.toContain('elsewhere');
  });

  it.each(['', '/below'])(
    'a DATA_DIR that is a link which leads nowhere, with %j behind it, is not made',
    async (below) => {
      const link = path.join(root, 'unmounted');
      symlinkSync(path.join(root, 'disk'), link);
      const refused = await portcullis(['serve'], { ...PORTS, DATA_DIR: `${link}${below}` });
      rmSync(link);
      expect([refused.code, refused.stdout, refused.stderr, readdirSync(root).includes('disk')]).toEqual([
        1,
        '',
        `portcullis: DATA_DIR: cannot write ${link}${below}: ${link} is a link to ${path.join(root, 'disk')}, which is not there: put back what it leads to, or remove the link.\n`,
        false,
      ]);
    },
  );

  it('a first start that failed, or was killed, before there was a database is made again', async () => {
    const fresh = path.join(root, 'fresh');
    const failed = await portcullis(['serve'], {
      ...PORTS,
      DATA_DIR: fresh,
      DECISION_LOG_FILE: path.join(original, 'a/b'),
    });
    expect([failed.code, readdirSync(fresh)]).toEqual([1, expect.arrayContaining(['secrets.json'])]);
    const server = await serve({ DATA_DIR: fresh });
    expect([server.key, readdirSync(fresh).includes('portcullis.sqlite.new')]).toEqual([expect.any(String), false]);
    server.child.kill('SIGKILL');
    await server.ended;
    rmSync(fresh, { recursive: true });
  });

  it('of a process that was killed keeps its log', async () => {
    const server = await serve({ DATA_DIR: dataDir });
    expect((await run(['keys', 'create', '--description', 'New'])).code).toBe(0);
    server.child.kill('SIGKILL');
    await server.ended;
    expect(sizeOf(`${databasePath(dataDir)}-wal`)).toBeGreaterThan(0);
    const mine = readFileSync(secretsPath(dataDir));
    copyFileSync(secretsPath(theirs), secretsPath(dataDir));
    rmSync(`${databasePath(dataDir)}-shm`);
    const before = filesIn(dataDir);
    expect((await run(['serve'])).code).toBe(1);
    const { 'portcullis.sqlite-shm': index, ...after } = filesIn(dataDir); // SQLite's index of the log, made again by each who reads.
    expect([typeof index, after]).toEqual(['string', before]);
    writeFileSync(secretsPath(dataDir), mine);
    expect((await run(['keys', 'list'])).stdout).toContain('New');
  });
});

describe('what is as it should be', () => {
  it('an empty folder is a first run', async () => {
    rmSync(dataDir, { recursive: true });
    await expectServed();
    await expectServed();
  });

  it('an empty folder is a first run, with secrets of the environment', async () => {
    rmSync(dataDir, { recursive: true });
    await expectServed({ PEPPER: OTHER_KEY, ENCRYPTION_KEY: OTHER_KEY });
    await expectServed({ PEPPER: OTHER_KEY, ENCRYPTION_KEY: OTHER_KEY });
  });

  it('what a first run left that was cut off is made again', async () => {
    rmSync(databasePath(dataDir));
    writeFileSync(`${databasePath(dataDir)}.new`, 'half a databa');
    writeFileSync(`${databasePath(dataDir)}.new-journal`, 'half a jour');
    await expectServed();
    expect(readdirSync(dataDir).sort()).toEqual(['lock.sqlite', 'policy', 'portcullis.sqlite', 'secrets.json']);
  });

  it('other peppers and encryption keys fit as long as they include those that are needed', async () => {
    const { peppers, encryptionKey } = readSecretsFile(secretsPath(dataDir));
    await expectServed({ PEPPER: `${OTHER_KEY},${peppers[0]}`, ENCRYPTION_KEY: `${OTHER_KEY},${encryptionKey}` });
  });

  it('a log whose first entry was altered still tells its key by the last', async () => {
    const db = new BetterSqlite3(databasePath(dataDir));
    db.exec("DROP TRIGGER audit_is_never_updated; UPDATE audit SET afterJson = '{}' WHERE seq = 1");
    db.close();
    expect((await run(['keys', 'list'])).code).toBe(0);
    expect((await run(['audit', 'verify'])).stderr).toContain('entry 1 is not what was written there');
  });
});
