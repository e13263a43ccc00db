import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadSecrets } from '../../../src/store/secrets/secrets.ts';
import { temporaryDirectory } from '../fixture.ts';

const given = { peppers: [Buffer.alloc(32, 1)], encryptionKeys: [Buffer.alloc(32, 3), Buffer.alloc(32, 5)] };

/** A file as the first run makes it, but for the keys. */
const file = {
  peppers: [Buffer.alloc(32, 1).toString('base64url'), Buffer.alloc(32, 2).toString('base64url')],
  encryptionKey: Buffer.alloc(32, 3).toString('base64url'),
  signingKey: Buffer.alloc(32, 4).toString('base64url'),
};

test('the first run makes three different keys of 32 bytes in a file that only its owner reads', () => {
  const dataDir = temporaryDirectory();
  const secrets = loadSecrets(dataDir, { create: true });
  const keys = [...secrets.peppers, ...secrets.encryptionKeys, secrets.signingKey];
  expect(keys.map(({ key }) => key.length)).toEqual([32, 32, 32]);
  expect(new Set(keys.map(({ id }) => id)).size).toBe(3);
  expect(readdirSync(dataDir)).toEqual(['secrets.json']);
  expect(statSync(join(dataDir, 'secrets.json')).mode & 0o777).toBe(0o600);
});

test('later runs, and others while the server runs, read the same ones', () => {
  const dataDir = temporaryDirectory();
  const first = loadSecrets(dataDir, { create: true });
  expect(loadSecrets(dataDir, { create: true })).toEqual(first);
  expect(loadSecrets(dataDir, { create: false })).toEqual(first);
});

test('missing secrets are an error where none may be made', () => {
  const dataDir = temporaryDirectory();
  expect(() => loadSecrets(dataDir, { create: false })).toThrow('There are no secrets at');
  expect(readdirSync(dataDir)).toEqual([]);
});

test('the first pepper and encryption key of the file make what is new, and older ones are still accepted', () => {
  const dataDir = temporaryDirectory();
  const olderEncryptionKeys = [Buffer.alloc(32, 5).toString('base64url')];
  writeFileSync(join(dataDir, 'secrets.json'), JSON.stringify({ ...file, olderEncryptionKeys }), { mode: 0o600 });
  const secrets = loadSecrets(dataDir, { create: false });
  expect(secrets.peppers.map(({ key }) => key[0])).toEqual([1, 2]);
  expect(secrets.encryptionKeys.map(({ key }) => key[0])).toEqual([3, 5]);
  expect(secrets.signingKey.key[0]).toBe(4);
});

test('given secrets take the place of those of their kind in the file, which stays as it is', () => {
  const dataDir = temporaryDirectory();
  const first = loadSecrets(dataDir, { create: true });
  const mixed = loadSecrets(dataDir, { create: true, given });
  expect(mixed).toEqual({
    peppers: given.peppers.map((key) => ({ id: expect.stringMatching(/^[0-9a-f]{8}$/), key })),
    encryptionKeys: given.encryptionKeys.map((key) => ({ id: expect.stringMatching(/^[0-9a-f]{8}$/), key })),
    signingKey: first.signingKey,
  });
  expect(loadSecrets(dataDir, { create: false, given: { ...given, peppers: [] } }).peppers).toEqual(first.peppers);
  expect(loadSecrets(dataDir, { create: false })).toEqual(first);
});

test('a file that others can read is refused', () => {
  const dataDir = temporaryDirectory();
  loadSecrets(dataDir, { create: true });
  chmodSync(join(dataDir, 'secrets.json'), 0o640);
  expect(() => loadSecrets(dataDir, { create: true })).toThrow('can be read by others: set its mode to 0600.');
});

test.each([
  ['text', 'pepper', 'is not JSON.'],
  ['something else', '{"peppers":"x","encryptionKey":"y","signingKey":"z"}', "does not hold the server's secrets."],
  ['a short key', JSON.stringify({ ...file, signingKey: 'c2hvcnQ' }), 'The signing key must be 32 bytes in base64url.'],
  [
    'older keys that are none',
    JSON.stringify({ ...file, olderEncryptionKeys: [1] }),
    "does not hold the server's secrets.",
  ],
  ['no pepper', JSON.stringify({ ...file, peppers: [] }), 'At least one pepper is needed.'],
])('a file that holds %s is refused, left as it is, and not quoted', (_, text, message) => {
  const dataDir = temporaryDirectory();
  const path = join(dataDir, 'secrets.json');
  writeFileSync(path, text, { mode: 0o600 });
  let refused: unknown;
  try {
    loadSecrets(dataDir, { create: true });
  } catch (error) {
    refused = error instanceof Error && { message: error.message.replace(`${path} `, ''), cause: error.cause };
  }
  expect(refused).toEqual({ message, cause: undefined });
  expect(readFileSync(path, 'utf8')).toBe(text);
});
