import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { type EncryptionKey, maskCredential, openSecret, sealSecret } from '../../src/domain/provider.ts';

const key: EncryptionKey = { id: 'one', key: randomBytes(32) };
const SECRET = 'sk-proj-ünïcode-0123456789';
const sealed = sealSecret(SECRET, 'pkey_1', key);

const flipped = (ciphertext: string, position: number): string => {
  const bytes = Buffer.from(ciphertext, 'base64');
  bytes[position] = (bytes[position] ?? 0) ^ 1;
  return bytes.toString('base64');
};

describe('a sealed secret', () => {
  it('opens with the key and for the row that it was sealed with', () => {
    expect(openSecret(sealed, 'pkey_1', key)).toBe(SECRET);
    expect(JSON.stringify(sealed)).not.toContain(SECRET);
  });

  it('opens with the one of several keys that it was sealed with', () => {
    expect(openSecret(sealed, 'pkey_1', { id: 'two', key: randomBytes(32) }, key)).toBe(SECRET);
  });

  it('looks different each time', () => {
    expect(sealSecret(SECRET, 'pkey_1', key).ciphertext).not.toBe(sealed.ciphertext);
  });

  it('does not open for another row: a ciphertext cannot be moved', () => {
    expect(() => openSecret(sealed, 'pkey_2', key)).toThrow();
  });

  it('does not open with another key, whatever its id says', () => {
    const other = randomBytes(32);
    expect(() => openSecret(sealed, 'pkey_1', { id: 'two', key: other })).toThrow(
      'The secret of pkey_1 is sealed with another encryption key.',
    );
    expect(() => openSecret(sealed, 'pkey_1', { id: 'one', key: other })).toThrow();
  });

  it('does not open when any of its parts was altered or is missing', () => {
    const last = Buffer.from(sealed.ciphertext, 'base64').length - 1;
    for (const position of [0, 11, 12, last - 16, last]) {
      const altered = { ...sealed, ciphertext: flipped(sealed.ciphertext, position) };
      expect(() => openSecret(altered, 'pkey_1', key)).toThrow();
    }
    expect(() => openSecret({ ...sealed, ciphertext: '' }, 'pkey_1', key)).toThrow(
      'The sealed secret of pkey_1 is damaged.',
    );
  });
});

describe('the mask of a credential', () => {
  it.each([
    ['sk-abcdefghijklmnop', '…'],
    ['sk-abcdefghijklmnopq', 'sk-a…nopq'],
    ['a_b', '…'],
    ['0123456789_0123456789_x', '0123…89_x'],
  ])('of %s is %s', (secret, mask) => expect(maskCredential(secret)).toBe(mask));
});
