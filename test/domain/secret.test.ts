import { createHmac } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { generateSecret, hashSecret, isWellFormedSecret, maskSecret, type SecretKind } from '../../src/domain/id.ts';

const kinds: [SecretKind, RegExp][] = [
  ['gateway', /^pcl_[0-9A-Za-z]{46}$/],
  ['master', /^pclm_[0-9A-Za-z]{46}$/],
  ['platform', /^sk_[0-9A-Za-z]{46}$/],
  ['invitation', /^pcli_[0-9A-Za-z]{46}$/],
];

describe('secrets', () => {
  test.each(kinds)('a %s secret has its prefix, 40 random characters and a checksum', (kind, form) => {
    for (let i = 0; i < 200; i++) {
      const secret = generateSecret(kind);
      expect(secret).toMatch(form);
      expect(isWellFormedSecret(secret, kind)).toBe(true);
    }
  });

  test('no two are alike, and every base62 character occurs', () => {
    const secrets = Array.from({ length: 500 }, () => generateSecret('gateway'));
    expect(new Set(secrets).size).toBe(500);
    expect(new Set(secrets.map((secret) => secret.slice(4, 44)).join('')).size).toBe(62);
  });

  test('a secret of one kind is not one of another', () => {
    const accepted = kinds.map(([made]) => kinds.map(([asked]) => isWellFormedSecret(generateSecret(made), asked)));
    expect(accepted).toEqual(kinds.map(([made]) => kinds.map(([asked]) => made === asked)));
    expect(kinds.length).toBe(4);
  });

  test('the checksum of a known secret never changes, or stored keys would stop working', () => {
    expect(isWellFormedSecret(`pcl_${'a'.repeat(40)}2n0ftQ`, 'gateway')).toBe(true);
  });

  test('any one mistyped character is noticed', () => {
    const secret = generateSecret('gateway');
    fc.assert(
      fc.property(fc.nat(secret.length - 1), fc.constantFrom(...'09AZaz_-é'), (at, character) => {
        const mistyped = secret.slice(0, at) + character + secret.slice(at + 1);
        expect(isWellFormedSecret(mistyped, 'gateway')).toBe(mistyped === secret);
      }),
    );
  });

  test.each([[''], ['pcl_'], ['pcl_ '], ['Bearer pcl_x'], ['x'.repeat(5_000_000)]])('%.20s is no secret', (text) => {
    expect(isWellFormedSecret(text, 'gateway')).toBe(false);
  });

  test('a trailing line break is noticed', () => {
    expect(isWellFormedSecret(`${generateSecret('gateway').slice(0, -1)}\n`, 'gateway')).toBe(false);
  });

  test('the stored form is the HMAC-SHA-256 under the pepper, in hex', () => {
    const pepper = { id: 'p1', key: Buffer.alloc(32, 7) };
    expect(hashSecret('pcl_secret', pepper)).toBe(
      createHmac('sha256', Buffer.alloc(32, 7)).update('pcl_secret').digest('hex'),
    );
    expect(hashSecret('pcl_secret', { id: 'p2', key: Buffer.alloc(32, 8) })).not.toBe(hashSecret('pcl_secret', pepper));
  });

  test('the mask shows the prefix, four characters and the last four', () => {
    expect(maskSecret('pcl_abcdEFGHIJKLMNOPQRSTUVWXYZ0123456789abcdefwxyz')).toBe('pcl_abcd…wxyz');
    expect(maskSecret('pclm_abcdEFGHIJKLMNOPQRSTUVWXYZ0123456789abcdefwxyz')).toBe('pclm_abcd…wxyz');
  });
});
