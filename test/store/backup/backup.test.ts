import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import BetterSqlite3 from 'better-sqlite3';
import { expect, test } from 'vitest';
import { systemClock } from '../../../src/domain/time.ts';
import { type BackupOptions, backUp, digestOf } from '../../../src/store/backup/backup.ts';
import { type RestoreOptions, restore } from '../../../src/store/backup/restore.ts';
import { databasePath } from '../../../src/store/db/data-dir.ts';
import { openDatabase } from '../../../src/store/db/database.ts';
import { MIGRATIONS } from '../../../src/store/migrations/migrate.ts';
import { loadSecrets } from '../../../src/store/secrets/secrets.ts';
import { createStore, type Store } from '../../../src/store/store.ts';
import { addTenant, START, temporaryDirectory } from '../fixture.ts';

const NOTHING_GIVEN = { peppers: [], encryptionKeys: [] };

/** A data directory with a database and secrets, and a place for its backup. */
async function dataDirectory(): Promise<{ dataDir: string; store: Store; folder: string }> {
  const root = temporaryDirectory();
  const dataDir = join(root, 'data');
  mkdirSync(dataDir);
  loadSecrets(dataDir, { create: true });
  const store = createStore({ path: databasePath(dataDir), clock: systemClock, create: true });
  await addTenant(store);
  return { dataDir, store, folder: join(root, 'backup') };
}

async function backedUp(dataDir: string, folder: string, options: Partial<BackupOptions> = {}) {
  const db = openDatabase(databasePath(dataDir));
  try {
    return await backUp(db, {
      dataDir,
      folder,
      withSecrets: true,
      given: NOTHING_GIVEN,
      now: START,
      version: '1.2.3',
      progress: () => {},
      ...options,
    });
  } finally {
    db.close();
  }
}

const restored = (folder: string, dataDir: string, options: Partial<RestoreOptions> = {}) =>
  restore({ folder, dataDir, given: NOTHING_GIVEN, force: false, now: START, progress: () => {}, ...options });

const organizations = (dataDir: string): string[] => {
  const db = openDatabase(databasePath(dataDir));
  try {
    return db.connection.prepare<[], string>('SELECT name FROM organizations ORDER BY id').pluck().all();
  } finally {
    db.close();
  }
};

const mode = (path: string): string => (statSync(path).mode & 0o777).toString(8);

test('a backup is a plain database, the secrets and a manifest, all for their owner alone', async () => {
  const { dataDir, folder } = await dataDirectory();
  const { manifest } = await backedUp(dataDir, folder);

  expect(readdirSync(folder).sort()).toEqual(['manifest.json', 'portcullis.sqlite', 'secrets.json']);
  expect(['', 'manifest.json', 'portcullis.sqlite', 'secrets.json'].map((name) => mode(join(folder, name)))).toEqual([
    '700',
    '600',
    '600',
    '600',
  ]);
  expect(JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8'))).toEqual(manifest);
  expect(manifest).toEqual({
    format: 1,
    createdAt: '2026-03-01T12:00:00.000Z',
    version: '1.2.3',
    schemaVersion: MIGRATIONS.length,
    pageCount: statSync(join(folder, 'portcullis.sqlite')).size / 4096,
    bytes: statSync(join(folder, 'portcullis.sqlite')).size,
    sha256: await digestOf(join(folder, 'portcullis.sqlite')),
    secrets: true,
  });
});

test('a backup is of one moment, however much is written while it is made', async () => {
  const { dataDir, store, folder } = await dataDirectory();
  await store.write((db) => {
    db.connection.exec('CREATE TABLE pairs (a INTEGER, b INTEGER, filler TEXT)');
    const insert = db.connection.prepare('INSERT INTO pairs VALUES (0, 0, hex(zeroblob(1500)))');
    for (let row = 0; row < 20_000; row += 1) insert.run();
  });
  let steps = 0;
  let writing = true;
  // Each transaction changes rows at both ends of the file: pages of different moments would not agree.
  const writer = (async () => {
    for (let round = 1; writing; round += 1) {
      await store.write((db) => {
        db.connection.prepare('UPDATE pairs SET a = ? WHERE rowid IN (1, 20000)').run(round);
        db.connection.prepare('UPDATE pairs SET b = ? WHERE rowid IN (1, 20000)').run(round);
      });
      await turn();
    }
  })();
  const progress = (): void => {
    steps += 1;
  };
  await backedUp(dataDir, folder, { progress });
  writing = false;
  await writer;

  const copy = openDatabase(join(folder, 'portcullis.sqlite'), { readonly: true });
  const ends = copy.connection
    .prepare<[], { a: number; b: number }>('SELECT a, b FROM pairs WHERE rowid IN (1, 20000)')
    .all();
  copy.close();
  const [first, last] = ends;
  expect(steps).toBeGreaterThan(3);
  expect(first).toEqual(last);
  expect(first?.a).toBe(first?.b);
});

test('a folder that holds anything is left as it is', async () => {
  const { dataDir, folder } = await dataDirectory();
  mkdirSync(folder);
  writeFileSync(join(folder, 'mine'), 'mine');
  await expect(backedUp(dataDir, folder)).rejects.toThrow(`${folder} is not empty: a backup overwrites nothing.`);
  expect(readdirSync(folder)).toEqual(['mine']);
});

test('a backup that fails leaves nothing', async () => {
  const { dataDir, folder } = await dataDirectory();
  chmodSync(join(dataDir, 'secrets.json'), 0o644);
  await expect(backedUp(dataDir, folder)).rejects.toThrow('can be read by others');
  expect(existsSync(folder)).toBe(false);
});

test('a backup tells which secrets of the database nobody has', async () => {
  const { dataDir, folder } = await dataDirectory();
  // The fixture hashes under a pepper of its own.
  expect((await backedUp(dataDir, folder)).missing).toEqual(['pepper pepper (2)']);
});

test('a restored database is the one that was backed up, with its secrets', async () => {
  const { dataDir, folder } = await dataDirectory();
  await backedUp(dataDir, folder);
  const fresh = temporaryDirectory();

  expect(await restored(folder, fresh)).toMatchObject({ replaced: undefined });
  expect(organizations(fresh)).toEqual(organizations(dataDir));
  expect(readFileSync(join(fresh, 'secrets.json'))).toEqual(readFileSync(join(dataDir, 'secrets.json')));
  expect(readdirSync(fresh).sort()).toEqual(['portcullis.sqlite', 'secrets.json']);
  expect(['portcullis.sqlite', 'secrets.json'].map((name) => mode(join(fresh, name)))).toEqual(['600', '600']);
});

test.each([
  ['without its manifest', (folder: string) => rmSync(join(folder, 'manifest.json')), 'holds no finished backup'],
  [
    'of another format',
    (folder: string) => writeFileSync(join(folder, 'manifest.json'), '{"format":2}'),
    'understands',
  ],
  [
    'with a byte changed',
    (folder: string) => {
      const bytes = readFileSync(join(folder, 'portcullis.sqlite'));
      bytes[5000] = (bytes[5000] ?? 0) ^ 1;
      writeFileSync(join(folder, 'portcullis.sqlite'), bytes);
    },
    'is damaged: its digest differs',
  ],
  [
    'cut short',
    (folder: string) => truncateSync(join(folder, 'portcullis.sqlite'), 8192),
    'is damaged: its digest differs',
  ],
])('a backup %s is refused, and nothing is changed', async (_, spoil, message) => {
  const { dataDir, folder } = await dataDirectory();
  await backedUp(dataDir, folder);
  spoil(folder);
  const fresh = temporaryDirectory();
  await expect(restored(folder, fresh)).rejects.toThrow(message);
  expect(readdirSync(fresh)).toEqual([]);
});

test('a backup whose database is damaged inside, or of a later or too old version, is refused though its digest agrees', async () => {
  const { dataDir, folder } = await dataDirectory();
  await backedUp(dataDir, folder);
  const file = join(folder, 'portcullis.sqlite');
  const manifest = JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8'));
  const spoil = async (change: () => void): Promise<void> => {
    change();
    writeFileSync(join(folder, 'manifest.json'), JSON.stringify({ ...manifest, sha256: await digestOf(file) }));
  };
  const change = (statement: string): void => {
    const db = new BetterSqlite3(file);
    db.exec(statement);
    db.close();
  };
  await spoil(() => change(`INSERT INTO schema_version VALUES (${MIGRATIONS.length + 1}, 0, '')`));
  await expect(restored(folder, temporaryDirectory())).rejects.toThrow(
    `${file} has schema version ${MIGRATIONS.length + 1}, this version of Portcullis knows ${MIGRATIONS.length}`,
  );
  await spoil(() => change("UPDATE schema_version SET digest = 'another'"));
  await expect(restored(folder, temporaryDirectory())).rejects.toThrow(
    `${file} was made by a version of Portcullis before 0.2.0, or by an unreleased one`,
  );
  await spoil(() => {
    const bytes = readFileSync(file);
    bytes.fill(7, 3 * 4096, 4 * 4096);
    writeFileSync(file, bytes);
  });
  await expect(restored(folder, temporaryDirectory())).rejects.toThrow(`${file} is damaged: `);
});

test('what is there is refused, and with force moved aside, its log with it', async () => {
  const { dataDir, folder } = await dataDirectory();
  await backedUp(dataDir, folder);
  const other = await dataDirectory();
  await expect(restored(folder, other.dataDir)).rejects.toThrow(
    `There is a database at ${databasePath(other.dataDir)}`,
  );
  const secretsBefore = readFileSync(join(other.dataDir, 'secrets.json'), 'utf8');
  const before = organizations(other.dataDir);

  const { replaced = '' } = await restored(folder, other.dataDir, { force: true });
  expect(replaced).toBe(join(other.dataDir, 'replaced-2026-03-01T12-00-00-000Z'));
  expect(organizations(other.dataDir)).toEqual(organizations(dataDir));
  expect(readFileSync(join(replaced, 'secrets.json'), 'utf8')).toBe(secretsBefore);
  expect(readdirSync(replaced)).toContain('portcullis.sqlite-wal');
  expect(organizations(replaced)).toEqual(before);
});

test('a backup without secrets needs those of its server at its new place', async () => {
  const { dataDir, folder } = await dataDirectory();
  await backedUp(dataDir, folder, { withSecrets: false });
  expect(readdirSync(folder).sort()).toEqual(['manifest.json', 'portcullis.sqlite']);
  const fresh = temporaryDirectory();
  await expect(restored(folder, fresh)).rejects.toThrow("The backup holds no secrets: put the server's at");

  writeFileSync(join(fresh, 'secrets.json'), readFileSync(join(dataDir, 'secrets.json')), { mode: 0o600 });
  await restored(folder, fresh);
  expect(organizations(fresh)).toEqual(organizations(dataDir));
});

test('other secrets are not overwritten', async () => {
  const { dataDir, folder } = await dataDirectory();
  await backedUp(dataDir, folder);
  const fresh = temporaryDirectory();
  loadSecrets(fresh, { create: true });
  await expect(restored(folder, fresh)).rejects.toThrow('There are other secrets at');
});
