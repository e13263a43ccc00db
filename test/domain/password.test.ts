import { describe, expect, it } from 'vitest';
import { DUMMY_HASH, fitsPassword, hashPassword, passwordFault } from '../../src/domain/identity.ts';

describe('a hash', () => {
  it('fits the password that it was made of, and no other', async () => {
    const hash = await hashPassword('correct horse battery');
    expect(hash).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$[\w+/]{22}\$[\w+/]{43}$/);
    expect(await fitsPassword('correct horse battery', hash)).toBe(true);
    expect(await fitsPassword('correct horse batterz', hash)).toBe(false);
    expect(await fitsPassword('', hash)).toBe(false);
  });

  it('has a salt of its own', async () => {
    expect(await hashPassword('the same twice')).not.toBe(await hashPassword('the same twice'));
  });

  it('of another implementation, with other costs, fits', async () => {
    // A test vector of the reference implementation of argon2.
    const reference = '$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc';
    expect([await fitsPassword('password', reference), await fitsPassword('differentpassword', reference)]).toEqual([
      true,
      false,
    ]);
  });

  it('that stands for nobody fits nothing', async () => {
    for (const password of ['', 'password', 'correct horse battery']) {
      expect(await fitsPassword(password, DUMMY_HASH)).toBe(false);
    }
  });

  it('that is damaged is a fault of ours, not a wrong password', async () => {
    await expect(fitsPassword('password', 'x')).rejects.toThrow('not in the PHC format');
  });

  it('does not tell code points apart that mean one character', async () => {
    const hash = await hashPassword('Ångström ﬁne');
    expect(await fitsPassword('Ångström fine', hash)).toBe(true);
  });
});

describe('a password that is chosen', () => {
  it.each([
    ['ten charac', undefined],
    ['nine char', 'Use at least 10 characters.'],
    ['x'.repeat(128), undefined],
    ['x'.repeat(129), 'Use at most 128 characters.'],
    ['🔑'.repeat(10), undefined],
    ['🔑'.repeat(9), 'Use at least 10 characters.'],
    // Eighteen characters when normalized.
    ['ﷺ'.repeat(8), 'Use at most 128 characters.'],
    ['ADA@example.com', 'Your e-mail address cannot be your password.'],
  ])('%s: %s', (password, fault) => {
    expect(passwordFault(password, 'ada@example.com')).toBe(fault);
  });
});
