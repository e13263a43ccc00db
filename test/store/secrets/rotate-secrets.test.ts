import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { newId } from '../../../src/domain/id.ts';
import { openSecret, sealSecret } from '../../../src/domain/provider.ts';
import { ManualClock } from '../../../src/domain/time.ts';
import { databasePath } from '../../../src/store/db/data-dir.ts';
import { type Database, openDatabase } from '../../../src/store/db/database.ts';
import {
  deleteProviderKey,
  insertProviderKey,
  listProviderKeys,
} from '../../../src/store/providers/provider-key-records.ts';
import {
  addEncryptionKey,
  dropPepper,
  resealProviderKeys,
  rotateEncryptionKey,
  rotatePepper,
} from '../../../src/store/secrets/rotate-secrets.ts';
import { loadSecrets, readSecretNeeds } from '../../../src/store/secrets/secrets.ts';
import { createStore } from '../../../src/store/store.ts';
import { insertKey } from '../../../src/store/tenants/key-records.ts';
import { addTenant, newKey, START, type Tenant, temporaryDirectory } from '../fixture.ts';

const record = (): void => {};

const NOTHING_GIVEN = { peppers: [], encryptionKeys: [] };

interface Place {
  readonly dataDir: string;
  readonly db: Database;
  readonly tenant: Tenant;
}

async function place(): Promise<Place> {
  const dataDir = temporaryDirectory();
  loadSecrets(dataDir, { create: true });
  const store = createStore({ path: databasePath(dataDir), clock: new ManualClock(START), create: true });
  const tenant = await addTenant(store);
  store.close();
  const db = openDatabase(databasePath(dataDir));
  onTestFinished(() => db.close());
  return { dataDir, db, tenant };
}

const secretsOf = (dataDir: string) => loadSecrets(dataDir, { create: false });

function addProviderKey({ dataDir, db, tenant }: Place, token: string): string {
  const id = newId('pkey');
  const secret = sealSecret(token, id, secretsOf(dataDir).encryptionKeys[0]);
  const key = { id, label: token, provider: 'openai', projectId: null, baseUrl: null, secret, mask: '…' };
  insertProviderKey(db, tenant.organizationId, { ...key, status: 'active' }, START);
  return id;
}

/** What the provider keys of the place open to, with the secrets that are in a folder. */
const opened = ({ db, tenant }: Place, dataDir: string): string[] =>
  listProviderKeys(db, tenant.organizationId, { limit: 200 })
    .items.map(({ id, secret }) => openSecret(secret, id, ...secretsOf(dataDir).encryptionKeys))
    .sort();

test('a pepper is neither made nor dropped where that cannot be noted', async () => {
  const { dataDir, db } = await place();
  const old = rotatePepper(db, dataDir, NOTHING_GIVEN, record).previousId;
  const before = secretsOf(dataDir);
  const fails = (): never => {
    throw new Error('the disk is full');
  };
  const drop = { given: NOTHING_GIVEN, force: true, now: START };
  expect(() => rotatePepper(db, dataDir, NOTHING_GIVEN, fails)).toThrow('the disk is full');
  expect(() => dropPepper(db, dataDir, old, drop, fails)).toThrow('the disk is full');
  expect(secretsOf(dataDir)).toEqual(before);
});

test('a new pepper is the current one, and the others are accepted behind it', async () => {
  const { dataDir, db } = await place();
  const before = secretsOf(dataDir);
  const { id, previousId } = rotatePepper(db, dataDir, NOTHING_GIVEN, record);
  const after = secretsOf(dataDir);
  expect([after.peppers[0].id, after.peppers.slice(1)]).toEqual([id, before.peppers]);
  expect(previousId).toBe(before.peppers[0].id);
  expect([after.encryptionKeys, after.signingKey]).toEqual([before.encryptionKeys, before.signingKey]);
});

test('a pepper is dropped when no key uses it, or by force', async () => {
  const { dataDir, db, tenant } = await place();
  const [first] = secretsOf(dataDir).peppers;
  insertKey(db, newKey(tenant, { pepperId: first.id }), START);
  const drop = (id: string, force = false) =>
    dropPepper(db, dataDir, id, { given: NOTHING_GIVEN, force, now: START }, record);

  expect(() => drop(first.id)).toThrow(`${first.id} is the current pepper: rotate it first.`);
  expect(() => drop('00000000')).toThrow('There is no pepper 00000000.');
  const { id: second } = rotatePepper(db, dataDir, NOTHING_GIVEN, record);
  expect(() => drop(first.id)).toThrow(`Pepper ${first.id} is still in use by keys: 1.`);
  expect(secretsOf(dataDir).peppers.map(({ id }) => id)).toEqual([second, first.id]);
  expect(drop(first.id, true)).toBe(1);
  expect(secretsOf(dataDir).peppers.map(({ id }) => id)).toEqual([second]);

  const { id: third } = rotatePepper(db, dataDir, NOTHING_GIVEN, record);
  expect(drop(second)).toBe(0);
  expect(secretsOf(dataDir).peppers.map(({ id }) => id)).toEqual([third]);
});

test('what uses a pepper are keys, master keys and open invitations, not deleted ones and not playground keys', async () => {
  const { db, tenant } = await place();
  const { organizationId } = tenant;
  const invite = (id: string, expiresAt: number): void => {
    db.connection.exec(
      `INSERT INTO invitations (id, organizationId, email, role, secretHash, pepperId, mask, expiresAt, createdAt, updatedAt)
       VALUES ('${id}', '${organizationId}', '${id}@acme.test', 'developer', '${id}', 'p', '', ${expiresAt}, 0, 0)`,
    );
  };
  insertKey(db, newKey(tenant, { pepperId: 'p' }), START);
  insertKey(db, newKey(tenant, { pepperId: 'p', kind: 'platform_secret' }), START);
  const gone = insertKey(db, newKey(tenant, { pepperId: 'p' }), START);
  db.connection.prepare('UPDATE keys SET deletedAt = 1 WHERE id = ?').run(gone.id);
  invite('inv_1', START + 1);
  invite('inv_2', START);
  // The tenant's first key and master key have the fixture's own; it has a playground key, too.
  expect(readSecretNeeds(db, START).peppers).toEqual([
    { id: 'p', count: 3 },
    { id: 'pepper', count: 2 },
  ]);
});

test('provider keys are sealed again with a new encryption key, which is then the only one', async () => {
  const there = await place();
  const { dataDir, db, tenant } = there;
  for (const token of ['sk-a', 'sk-b', 'sk-c']) addProviderKey(there, token);
  const gone = addProviderKey(there, 'sk-gone');
  deleteProviderKey(db, tenant.organizationId, gone, START);
  const [before] = secretsOf(dataDir).encryptionKeys;

  const { id, ...result } = rotateEncryptionKey(db, dataDir, NOTHING_GIVEN);
  expect(result).toEqual({ previousId: before.id, resealed: 3, unopened: [] });
  expect(secretsOf(dataDir).encryptionKeys.map((key) => key.id)).toEqual([id]);
  expect(id).not.toBe(before.id);
  expect(opened(there, dataDir)).toEqual(['sk-a', 'sk-b', 'sk-c']);
  expect(readSecretNeeds(db, START).encryptionKeys).toEqual([{ id, count: 3 }]);
});

test('cut off before or after the commit, every secret can be opened, and the next rotation ends what was begun', async () => {
  const there = await place();
  const { dataDir, db } = there;
  addProviderKey(there, 'sk-a');
  const path = join(dataDir, 'secrets.json');
  const kept = temporaryDirectory();
  const keep = (name: string): void => {
    mkdirSync(join(kept, name));
    copyFileSync(path, join(kept, name, 'secrets.json'));
  };
  // What is in the file at the moment of the commit, and right after it.
  const { connection } = db;
  keep('before');
  connection.function('keep_file', () => {
    keep('commit');
    return null;
  });
  connection.exec(
    'CREATE TEMP TRIGGER watch AFTER UPDATE OF ciphertext ON provider_keys BEGIN SELECT keep_file(); END',
  );
  // Cut off after the commit: the older keys were not forgotten yet.
  addEncryptionKey(db, dataDir);
  resealProviderKeys(db, secretsOf(dataDir).encryptionKeys);
  expect(opened(there, dataDir)).toEqual(['sk-a']);
  const both = secretsOf(join(kept, 'commit')).encryptionKeys.map(({ id }) => id);
  expect(both).toEqual(secretsOf(dataDir).encryptionKeys.map(({ id }) => id));
  expect(both[1]).toBe(secretsOf(join(kept, 'before')).encryptionKeys[0].id);

  connection.exec('DROP TRIGGER watch');
  const { id } = rotateEncryptionKey(db, dataDir, NOTHING_GIVEN);
  expect(secretsOf(dataDir).encryptionKeys.map((key) => key.id)).toEqual([id]);
  expect(opened(there, dataDir)).toEqual(['sk-a']);
});

test('a secret that no key opens is left as it is, and named', async () => {
  const there = await place();
  const { dataDir, db } = there;
  addProviderKey(there, 'sk-a');
  const damaged = addProviderKey(there, 'sk-damaged');
  db.connection.prepare("UPDATE provider_keys SET ciphertext = 'AAAA' WHERE id = ?").run(damaged);
  expect(rotateEncryptionKey(db, dataDir, NOTHING_GIVEN)).toMatchObject({ resealed: 1, unopened: [damaged] });
});

test('secrets of the environment are changed there: the file stays as it is', async () => {
  const there = await place();
  const { dataDir, db } = there;
  addProviderKey(there, 'sk-a');
  const file = readFileSync(join(dataDir, 'secrets.json'), 'utf8');
  const [sealedWith] = secretsOf(dataDir).encryptionKeys;
  const fresh = Buffer.alloc(32, 7);
  const given = { peppers: [Buffer.alloc(32, 1)], encryptionKeys: [sealedWith.key] };

  expect(() => rotatePepper(db, dataDir, given, record)).toThrow(
    'PEPPER is given by the environment: put a new one before it',
  );
  expect(() => dropPepper(db, dataDir, 'x', { given, force: false, now: START }, record)).toThrow('PEPPER is given by');
  expect(() => rotateEncryptionKey(db, dataDir, given)).toThrow('ENCRYPTION_KEY is given by the environment');
  const listed = { ...given, encryptionKeys: [fresh, sealedWith.key] };
  expect(rotateEncryptionKey(db, dataDir, listed)).toMatchObject({ resealed: 1, unopened: [] });
  expect(readFileSync(join(dataDir, 'secrets.json'), 'utf8')).toBe(file);
  writeFileSync(
    join(dataDir, 'secrets.json'),
    file.replace(sealedWith.key.toString('base64url'), fresh.toString('base64url')),
  );
  expect(opened(there, dataDir)).toEqual(['sk-a']);
});
