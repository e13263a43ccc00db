// `portcullis policy build`, with OPA where it can be had: on the PATH, or made by Go.
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { findOpa } from '../../scripts/opa/find-opa.ts';
import { readArchive } from '../../src/policy/archive/read-archive.ts';
import { signingKey } from '../support/policy-bundles.ts';
import { type CommandLine, createCommandLine, jsonOf } from './command-line.ts';

const CONTRACTORS = fileURLToPath(new URL('../fixtures/policy/contractors', import.meta.url));
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
  it.each(['contractors', 'examples', 'denials', 'late'])('makes the bundle that is committed of %s', async (name) => {
    const sources = fileURLToPath(new URL(`../fixtures/policy/${name}`, import.meta.url));
    cpSync(sources, path.join(folder, name), { recursive: true });
    const args = ['policy', 'build', path.join(folder, name), '-o', output(), '--revision', name, '--json'];
    const made = jsonOf(await portcullis.runWith({ PATH: pathWithOpa() }, ...args));
    expect(made).toMatchObject({ revision: name, signed: false });
    expect(readArchive(readFileSync(output()))).toEqual(readArchive(readFileSync(`${sources}.tar.gz`)));
  });

  it('signs what it makes', async () => {
    const { privateKey, publicKey } = signingKey();
    const file = (name: string): string => path.join(folder, name);
    writeFileSync(file('private.pem'), privateKey.export({ type: 'sec1', format: 'pem' }));
    writeFileSync(file('public.pem'), publicKey);
    expect((await build('--signing-key', file('private.pem'), '--signing-alg', 'ES256')).code).toBe(0);
    const environment = { POLICY_BUNDLE: output(), POLICY_BUNDLE_PUBLIC_KEY: file('public.pem') };
    expect((await portcullis.runWith(environment, 'policy', 'bundle', 'check', output())).code).toBe(0);
  });

  it("refuses Rego outside of the team's package", async () => {
    writeFileSync(path.join(folder, 'team/custom/more.rego'), 'package gateway.authz\n\nmore := 1\n');
    const { code, stderr } = await build();
    expect(code).toBe(1);
    expect(stderr).toContain("manifest roots [custom custom_data] do not permit 'package gateway.authz'");
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
      'portcullis: One of its fixtures fails: "Contractors make no images", action=image key=contractor model=sandbox-image-plus: expected permit sandbox/sandbox-image-plus, came deny custom (Access denied: contractors make no images (no-images-for-contractors).).\n',
    ]);
    expect(() => readFileSync(output())).toThrow('ENOENT');
  });
});

it('says that it needs opa where there is none', async () => {
  const { code, stderr } = await portcullis.runWith({ PATH: folder }, 'policy', 'build', folder, '-o', output());
  expect([code, stderr]).toEqual([
    1,
    'portcullis: `opa` is needed to compile Rego, and is not on the PATH: install OPA 1.22 or newer.\n',
  ]);
});
