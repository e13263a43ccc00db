// `portcullis policy build`, with OPA where it can be had: on the PATH, or made by Go.
import { execFileSync, spawnSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { findOpa } from '../../scripts/opa/find-opa.ts';
import { readArchive } from '../../src/policy/archive/read-archive.ts';
import { signingKey } from '../support/policy-bundles.ts';
import { type CommandLine, createCommandLine, jsonOf } from './command-line.ts';

const CONTRACTORS = fileURLToPath(new URL('../fixtures/policy/contractors', import.meta.url));
const NO_FIXTURES = 'portcullis: warning: there are no fixtures: nothing shows that the policy does what it should.\n';
const opa = findOpa();

/** A PATH on which `opa` is. */
function pathWithOpa(): string {
  const { PATH = '' } = process.env;
  if (spawnSync('opa', ['version']).status === 0) return PATH;
  const cwd = fileURLToPath(new URL('../../scripts/opa', import.meta.url));
  const binary = execFileSync('go', ['tool', '-n', 'opa'], { cwd, encoding: 'utf8' }).trim();
  return `${path.dirname(binary)}${path.delimiter}${PATH}`;
}

let portcullis: CommandLine;
let folder: string;

beforeEach(async () => {
  portcullis = await createCommandLine();
  folder = mkdtempSync(path.join(tmpdir(), 'build-'));
  cpSync(CONTRACTORS, path.join(folder, 'team'), { recursive: true });
});
afterEach(() => {
  portcullis.close();
  rmSync(folder, { recursive: true });
});

const output = (): string => path.join(folder, 'bundle.tar.gz');
const build = (...more: string[]) =>
  portcullis.runWith({ PATH: pathWithOpa() }, 'policy', 'build', path.join(folder, 'team'), '-o', output(), ...more);

describe.skipIf(opa === null)('portcullis policy build', { timeout: 120_000 }, () => {
  it.each([
    ['contractors', ''],
    ['examples', ''],
    ['denials', NO_FIXTURES],
    ['late', NO_FIXTURES],
  ])('makes the bundle that is committed of %s', async (name, warnings) => {
    const sources = fileURLToPath(new URL(`../fixtures/policy/${name}`, import.meta.url));
    cpSync(sources, path.join(folder, name), { recursive: true });
    const args = ['policy', 'build', path.join(folder, name), '-o', output(), '--revision', name, '--json'];
    const made = await portcullis.runWith({ PATH: pathWithOpa() }, ...args);
    expect(made.stderr).toBe(warnings);
    expect(jsonOf({ ...made, stderr: '' })).toMatchObject({ revision: name, signed: false });
    expect(readArchive(readFileSync(output()))).toEqual(readArchive(readFileSync(`${sources}.tar.gz`)));
  });

  it('signs what it makes', async () => {
    const { privateKey, publicKey } = signingKey();
    const file = (name: string): string => path.join(folder, name);
    writeFileSync(file('private.pem'), privateKey.export({ type: 'sec1', format: 'pem' }));
    writeFileSync(file('public.pem'), publicKey);
    expect((await build('--signing-key', file('private.pem'), '--signing-alg', 'ES256')).code).toBe(0);
    const environment = { POLICY_BUNDLE: output(), POLICY_BUNDLE_PUBLIC_KEY: file('public.pem') };
    const { number } = Object(
      jsonOf(await portcullis.runWith(environment, 'policy', 'bundle', 'check', output(), '--json')),
    );
    expect(number).toBeGreaterThan(Date.now() / 1000 - 600);

    const again = ['--signing-key', file('private.pem'), '--signing-alg', 'ES256', '--number', '7', '--revision', 'r'];
    const { stdout } = await build(...again);
    expect(stdout).toMatch(/: r \(policy [0-9a-f]{12}\), signed as number 7\.\n$/);
    const checked = await portcullis.runWith(environment, 'policy', 'bundle', 'check', output());
    expect(checked.stdout).toMatch(/ is valid: r \(policy [0-9a-f]{12}, number 7\)\.\n$/);
    expect(await build('--number', '0')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('It must be a whole number from 1 to 9007199254740991.'),
    });
  });

  it('says which algorithm suits a key', async () => {
    const { privateKey, publicKey } = signingKey();
    const file = path.join(folder, 'key.pem');
    const signedWith = async (key: string, ...more: string[]) => {
      writeFileSync(file, key);
      const { code, stderr } = await build('--signing-key', file, ...more);
      return [code, stderr];
    };
    const ec = privateKey.export({ type: 'sec1', format: 'pem' }).toString();
    const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ type: 'pkcs8', format: 'pem' });
    const wrong = (algorithm: string, suiting: string) => [
      2,
      `portcullis: ${file}: its key cannot sign with ${algorithm}: pass --signing-alg ${suiting}.\n`,
    ];
    expect(await signedWith(ec)).toEqual(wrong('RS256', 'ES256'));
    expect(await signedWith(ec, '--signing-alg', 'ES384')).toEqual(wrong('ES384', 'ES256'));
    expect(await signedWith(rsa.toString(), '--signing-alg', 'ES256')).toEqual(wrong('ES256', 'RS256'));
    const none = [2, `portcullis: ${file} is not a private key in PEM form, without a passphrase.\n`];
    expect(await signedWith(publicKey)).toEqual(none);
    expect(await signedWith(rsa.toString())).toEqual([0, '']);
  });

  it("refuses Rego outside of the team's package", async () => {
    writeFileSync(path.join(folder, 'team/custom/more.rego'), 'package gateway.authz\n\nmore := 1\n');
    const { code, stderr } = await build();
    expect(code).toBe(1);
    expect(stderr).toContain("manifest roots [custom custom_data] do not permit 'package gateway.authz'");
  });

  it('refuses a field that the input does not have, and names the file by the path that was given', async () => {
    const rule = 'deny contains {"id": "a", "message": "b"} if input.facts.mata.ticket == "c"';
    writeFileSync(path.join(folder, 'team/custom/more.rego'), `package custom\n\n${rule}\n`);
    const { code, stderr } = await build();
    const file = path.join(folder, 'team/custom/more.rego');
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining(`${file}:3: rego_type_error: undefined ref: input.facts.mata.ticket`),
    ]);
  });

  it('refuses a folder without rules in a package custom', async () => {
    rmSync(path.join(folder, 'team/custom'), { recursive: true });
    const { code, stderr } = await build();
    expect([code, stderr]).toEqual([
      1,
      `portcullis: ${path.join(folder, 'team')} has no rule in a package custom: there is nothing to build.\n`,
    ]);
  });

  it('warns of what may not be as it was meant', async () => {
    const file = (name: string): string => path.join(folder, 'team', name);
    renameSync(file('fixtures'), file('fixture'));
    renameSync(file('custom_data/data.json'), file('custom_data/limits.json'));
    expect((await build()).stderr).toBe(
      [
        'nothing defines data.custom_data.contractors: a rule that reads it does not hold.',
        'custom_data/limits.json, fixture/images.yaml: not used. A bundle takes *.rego, data.json or data.yaml in custom_data, and *.yaml in fixtures.',
        'there are no fixtures: nothing shows that the policy does what it should.',
      ]
        .map((warning) => `portcullis: warning: ${warning}\n`)
        .join(''),
    );
    writeFileSync(file('custom/images.rego'), 'package custom\n\nallow := true\n');
    expect((await build()).stderr).toContain('warning: package custom defines no `deny`, so it denies nothing.\n');
    rmSync(file('fixture'), { recursive: true });
    writeFileSync(
      file('custom/images.rego'),
      'package custom\n\ndeny contains {"id": "a", "message": "b"} if input.action\n',
    );
    const closed = /warning: package custom denies the call of the self-test/;
    expect((await build()).stderr).toMatch(closed);
    const check = await portcullis.run('policy', 'bundle', 'check', output());
    expect([check.code, check.stderr]).toEqual([0, expect.stringMatching(closed)]);
  });

  it('refuses builtins that WebAssembly lacks', async () => {
    writeFileSync(path.join(folder, 'team/custom/more.rego'), 'package custom\n\nnow := time.now_ns()\n');
    const { code, stderr } = await build();
    expect([code, stderr.includes('undefined function time.now_ns')]).toEqual([1, true]);
  });

  it('writes nothing that fails its fixtures', async () => {
    mkdirSync(path.join(folder, 'team/fixtures'), { recursive: true });
    const fixture = path.join(folder, 'team/fixtures/images.yaml');
    writeFileSync(
      fixture,
      readFileSync(fixture, 'utf8').replace('deny: custom, rules: no-images-for-contractors', 'permit: all'),
    );
    const { code, stderr } = await build();
    expect([code, stderr]).toEqual([
      1,
      'portcullis: One of its fixtures fails: "Contractors make no images", action=image key=contractor model=sandbox-image-plus: expected permit sandbox/sandbox-image-plus, got deny custom (Access denied: contractors make no images (no-images-for-contractors).).\n',
    ]);
    expect(() => readFileSync(output())).toThrow('ENOENT');
  });
});

it.each([
  ['nope: there is no such file or folder.', ['nope', '-o', 'bundle.tar.gz']],
  ['file.txt: a part of this path is not a folder.', ['file.txt', '-o', 'bundle.tar.gz']],
  ['nope/bundle.tar.gz cannot be written: there is no folder $PWD/nope.', ['.', '-o', 'nope/bundle.tar.gz']],
  ['nope.pem: there is no such file or folder.', ['.', '-o', 'bundle.tar.gz', '--signing-key', 'nope.pem']],
])('%s (%j)', async (message, args) => {
  writeFileSync(path.join(portcullis.folder, 'file.txt'), '');
  const { code, stderr } = await portcullis.run('policy', 'build', ...args);
  expect([code, stderr]).toEqual([2, `portcullis: ${message.replace('$PWD', portcullis.folder)}\n`]);
});

it('says that it needs opa where there is none', async () => {
  const { code, stderr } = await portcullis.runWith({ PATH: folder }, 'policy', 'build', folder, '-o', output());
  expect([code, stderr]).toEqual([
    1,
    'portcullis: `opa` is needed to compile Rego, and is not on the PATH: install OPA 1.22 or newer.\n',
  ]);
});
