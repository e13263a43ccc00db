import { describe, expect, it } from 'vitest';
import { isSameServer, readBaseUrl } from '../../../src/admin/providers/known-providers.ts';
import { ApiError } from '../../../src/domain/errors.ts';

/** The base URL as it is stored, or why it is refused. */
function read(text: string, opened: readonly string[] = []): string {
  try {
    return readBaseUrl(text, '/baseUrl', opened);
  } catch (error) {
    if (error instanceof ApiError && error.status === 400 && error.param === '/baseUrl') return error.message;
    throw error;
  }
}

const NO_URL = 'A base URL must be an http or https URL without user, query and fragment.';
const isPrivate = (endpoint: string): string =>
  `The address of the base URL is private: it can be used when ALLOW_PRIVATE_UPSTREAMS names ${endpoint}.`;

describe('a base URL', () => {
  it.each([
    ['https://Models.Example/v1/', 'https://models.example/v1'],
    ['HTTP://models.example:80//', 'http://models.example'],
    ['https://models.example/a@b', 'https://models.example/a@b'],
    ['https://[2606:4700::1]:8443', 'https://[2606:4700::1]:8443'],
    // Whatever the name leads to is judged when a connection is made.
    ['http://internal.example', 'http://internal.example'],
  ])('%s is stored as %s', (text, stored) => expect(read(text)).toBe(stored));

  it.each([
    '',
    'models.example',
    'ftp://models.example',
    'file:///etc/passwd',
    'https://',
    'https://user@models.example',
    'https://user:password@models.example',
    'https://:password@models.example',
    'https://models.example/v1?key=1',
    'https://models.example/v1?',
    'https://models.example/#a',
    'https://models.example/#',
    ' https://models.example',
    'https://models.example/a b',
    'https:\\\\models.example',
    'https://models.exa\nmple',
    'https://999.1.1.1',
    'https://[::g]',
    'https://models.example:99999',
  ])('is not "%s"', (text) => expect(read(text)).toBe(NO_URL));

  it.each([
    ['http://127.0.0.1:8000/v1', '127.0.0.1:8000'],
    ['https://127.0.0.1', '127.0.0.1:443'],
    ['http://2130706433', '127.0.0.1:80'],
    ['http://0x7f.1', '127.0.0.1:80'],
    ['http://0177.0.0.1', '127.0.0.1:80'],
    ['http://１２７.0.0.1', '127.0.0.1:80'],
    ['http://127.0.0.1.', '127.0.0.1:80'],
    ['http://0', '0.0.0.0:80'],
    ['http://[::1]:1', '[::1]:1'],
    ['http://[::ffff:127.0.0.1]', '[::ffff:7f00:1]:80'],
    ['http://169.254.169.254/latest', '169.254.169.254:80'],
    ['http://10.0.0.7', '10.0.0.7:80'],
    ['http://LocalHost:11434', 'localhost:11434'],
    ['http://a.localhost.', 'a.localhost.:80'],
  ])('%s needs the exception %s', (text, endpoint) => {
    expect(read(text)).toBe(isPrivate(endpoint));
    expect(read(text, ['10.9.9.9:80'])).toBe(isPrivate(endpoint));
    expect(read(text, [endpoint])).toMatch(/^https?:/);
  });

  it('leads to the same server only with scheme, host and port alike', () => {
    const one = 'https://models.example/v1';
    expect(isSameServer(one, 'https://models.example:443/v2')).toBe(true);
    for (const other of ['http://models.example/v1', 'https://models.example:444', 'https://a.models.example']) {
      expect(isSameServer(one, other)).toBe(false);
    }
  });
});
