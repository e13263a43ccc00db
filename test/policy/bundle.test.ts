import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { POLICY_DIRECTORY, readBundle } from '../../src/policy/bundle.ts';
import { PolicyFailure } from '../../src/policy/data-document.ts';

const made: string[] = [];
afterEach(() => {
  for (const directory of made.splice(0)) rmSync(directory, { recursive: true });
});

/** A copy of the policy folder, to be damaged. */
function copyOfPolicy(): string {
  const directory = mkdtempSync(path.join(tmpdir(), 'policy-'));
  made.push(directory);
  cpSync(POLICY_DIRECTORY, directory, { recursive: true });
  return directory;
}

const causeOf = (directory: string): unknown => {
  try {
    return readBundle(directory);
  } catch (failure) {
    return failure instanceof PolicyFailure ? failure.cause : failure;
  }
};

describe('a bundle', () => {
  test('is read when both digests are right', () => {
    expect(readBundle(copyOfPolicy())).toEqual(readBundle());
  });

  test('is refused when the module is not the recorded one', () => {
    const directory = copyOfPolicy();
    writeFileSync(path.join(directory, 'bundle/policy.wasm'), 'other');
    expect(causeOf(directory)).toEqual(new Error('policy.wasm is not the module that the manifest records.'));
  });

  test.each([
    ['Rego changes', 'gateway/authz/authz.rego', '# changed'],
    ['Rego is added', 'gateway/authz/more.rego', 'package gateway.authz'],
    ['the roots change', '.manifest', '{}'],
    ['the allowed builtins change', 'capabilities.json', '{}'],
  ])('is refused when %s without a build', (_, file, content) => {
    const directory = copyOfPolicy();
    writeFileSync(path.join(directory, file), content);
    expect(causeOf(directory)).toEqual(
      new Error('The Rego sources are not those that the compiled policy was built from: run npm run policy:build.'),
    );
  });

  test('does not depend on tests', () => {
    const directory = copyOfPolicy();
    writeFileSync(path.join(directory, 'gateway/authz/authz_test.rego'), 'package gateway.authz_test');
    expect(causeOf(directory)).toEqual(readBundle());
  });

  test('is refused without a complete manifest', () => {
    const directory = copyOfPolicy();
    writeFileSync(path.join(directory, 'bundle/manifest.json'), '{"opaVersion":"1"}');
    expect(causeOf(directory)).toEqual(new Error('The manifest lacks a field.'));
  });

  test('may use only builtins that WebAssembly has itself', () => {
    const { builtins } = JSON.parse(readFileSync(path.join(POLICY_DIRECTORY, 'capabilities.json'), 'utf8'));
    const names = new Set(builtins.map(({ name }: { name: string }) => name));
    const ofTheHost = [
      'sprintf',
      'regex.split',
      'json.patch',
      'semver.compare',
      'time.now_ns',
      'http.send',
      'opa.runtime',
    ];
    const others = [
      'rand.intn',
      'uuid.rfc4122',
      'net.cidr_is_valid',
      'net.cidr_merge',
      'yaml.marshal',
      'crypto.sha256',
    ];
    expect([...ofTheHost, ...others, 'trace', 'internal.print'].filter((name) => names.has(name))).toEqual([]);
    expect(names.size).toBeGreaterThan(50);
  });
});
