// `portcullis policy bundle`, next to a data directory in which bundles have been in force.
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { archivedBundle, readArchive } from '../../src/policy/archive/read-archive.ts';
import { readBundle } from '../../src/policy/bundle.ts';
import {
  archiveDigest,
  keepArchive,
  setBundleAside,
  standingIn,
  withActive,
  writeBundleState,
} from '../../src/store/bundles/bundle-files.ts';
import { archiveOf, bundleFiles, compiled, signed, signingKey } from '../support/policy-bundles.ts';
import { type CommandLine, createCommandLine, jsonOf } from './command-line.ts';

const key = signingKey();
let portcullis: CommandLine;
let environment: Record<string, string>;

beforeEach(async () => {
  portcullis = await createCommandLine();
  const file = (name: string): string => path.join(portcullis.folder, name);
  mkdirSync(file('in'));
  writeFileSync(file('key.pem'), key.publicKey);
  environment = { POLICY_BUNDLE: file('in/bundle.tar.gz'), POLICY_BUNDLE_PUBLIC_KEY: file('key.pem') };
});
afterEach(() => portcullis.close());

const bundle = (...args: string[]) => portcullis.runWith(environment, 'policy', 'bundle', ...args);

/** Two bundles, as a server leaves them that has activated one after the other. */
function activated(): void {
  const known = (revision: string, at: string) => {
    const archive = archiveOf(signed(bundleFiles(revision, { 'data.json': JSON.stringify({ revision }) }), key));
    keepArchive(portcullis.folder, archive);
    const { digest } = archivedBundle(readArchive(archive));
    return { archive: archiveDigest(archive), digest, revision, source: '/srv/bundle.tar.gz', activatedAt: at };
  };
  const first = withActive(undefined, known('v1', '2026-11-24T10:00:00.000Z'));
  writeBundleState(portcullis.folder, withActive(first, known('v2', '2026-11-24T11:00:00.000Z')));
}

function stateOf() {
  const standing = standingIn(portcullis.folder);
  if (!('bundle' in standing)) throw new Error('no bundle is in force');
  return standing.bundle;
}

const FIXTURE = `
name: Swift may be called
given: { catalog: { models: { swift-1: { providers: { acme: {} } } } }, keys: { ci: {} } }
requests: { model: swift-1 }
expect: [{ model: swift-1, permit: all }]
`;

/** The first digits of the policy by which fixtures are judged, in a shell without settings. */
async function policyOfTests(): Promise<string | undefined> {
  const file = path.join(portcullis.folder, 'fixture.yaml');
  writeFileSync(file, FIXTURE);
  const { stdout } = await portcullis.run('policy', 'test', file);
  return /\(policy ([0-9a-f]{12})\)/.exec(stdout)?.[1];
}

describe('portcullis policy bundle', () => {
  it('shows the policy of the installation where no bundle is asked for', async () => {
    const { digest } = readBundle();
    expect(await portcullis.run('policy', 'bundle', 'status')).toEqual({
      code: 0,
      stdout: `The policy of this installation is in force: ${digest.slice(0, 12)}. POLICY_BUNDLE is not set.\n`,
      stderr: '',
    });
  });

  it('goes back one step and forth again, and the audit log has it', async () => {
    activated();
    expect(jsonOf(await bundle('rollback', '--json'))).toMatchObject({ active: { revision: 'v1' } });
    const { active } = stateOf();
    const { stdout } = await bundle('status');
    expect(stdout).toMatch(
      /^in force {2}v1 .*, by a rollback\nbefore {4}v2 .*, from \/srv\/bundle.tar.gz\nThe gateway ignores the bundle you left until the source offers a third one\.\n/,
    );
    expect(jsonOf(await bundle('rollback', '--json'))).toMatchObject({ active: { revision: 'v2' } });
    const log = jsonOf(await portcullis.run('audit', 'list', '--action', 'policy_bundle.rollback', '--json'));
    const { entries } = Object(log);
    expect(entries).toHaveLength(2);
    expect(entries.map(({ target }: { target: { id: string } }) => target.id)).toEqual([
      stateOf().active.digest,
      active.digest,
    ]);
    expect(jsonOf(await bundle('status', '--json'))).toMatchObject({
      history: [{ what: 'rolled_back' }, { what: 'rolled_back' }, { what: 'activated' }, { what: 'activated' }],
    });
  });

  it('tells the truth in a shell without the settings of the server, and acts by it', async () => {
    activated();
    const { active } = stateOf();
    const { stdout } = await portcullis.run('policy', 'bundle', 'status');
    expect(stdout).toMatch(/^in force {2}v2 .*, from \/srv\/bundle.tar.gz\nbefore {4}v1 /);
    expect(await policyOfTests()).toBe(active.digest.slice(0, 12));

    setBundleAside(portcullis.folder, '2026-11-25T12:00:00.000Z');
    const { digest } = readBundle();
    const truth = 'since 2026-11-25T12:00:00.000Z: the server was last started without POLICY_BUNDLE.\n';
    for (const settings of [{}, environment]) {
      const run = (...args: string[]) => portcullis.runWith(settings, 'policy', 'bundle', ...args);
      expect(await run('status')).toEqual({
        code: 0,
        stdout: `The policy of this installation is in force: ${digest.slice(0, 12)}, ${truth}`,
        stderr: '',
      });
      expect(await run('rollback')).toEqual({
        code: 1,
        stdout: '',
        stderr: `portcullis: The policy of this installation is in force, ${truth}`,
      });
    }
    expect(await policyOfTests()).toBe(digest.slice(0, 12));
    expect((await portcullis.runWith(environment, 'access', '--all')).stderr).toBe(
      'portcullis: POLICY_BUNDLE is set, but no server has started with it yet on this DATA_DIR: start the server once.\n',
    );
  });

  it('shows why what the source has is not in force', async () => {
    activated();
    const refusal = {
      at: '2026-11-25T12:00:00.000Z',
      code: 'unreachable',
      message: 'There is no file /srv/bundle.tar.gz.',
    };
    writeBundleState(portcullis.folder, { ...stateOf(), refusal });
    expect((await bundle('status')).stdout).toContain(
      '\nrefused   unreachable, since 2026-11-25T12:00:00.000Z: There is no file /srv/bundle.tar.gz.\n',
    );
    expect(jsonOf(await bundle('status', '--json'))).toMatchObject({ refusal });
  });

  it('has nothing to go back to before a server was started', async () => {
    expect(await bundle('rollback')).toEqual({
      code: 1,
      stdout: '',
      stderr: 'portcullis: No bundle has been in force yet: start the server once.\n',
    });
  });

  it('checks a bundle as the server would', async () => {
    const file = path.join(portcullis.folder, 'in/next.tar.gz');
    writeFileSync(file, archiveOf(signed(bundleFiles('v3'), key)));
    expect(jsonOf(await bundle('check', file, '--json'))).toEqual({ digest: readBundle().digest, revision: 'v3' });
    writeFileSync(file, archiveOf(signed(bundleFiles('v3', { 'policy.wasm': compiled('permit-all') }), key)));
    expect(await bundle('check', file)).toEqual({
      code: 1,
      stdout: '',
      stderr:
        'portcullis: It fails the self-test: deny_models {"models":["swift-1"]} does not deny for an organization.\n',
    });
  });

  it('checks a signature where POLICY_BUNDLE is not set', async () => {
    const file = path.join(portcullis.folder, 'next.tar.gz');
    const settings = { POLICY_BUNDLE_PUBLIC_KEY: path.join(portcullis.folder, 'key.pem') };
    const check = () => portcullis.runWith(settings, 'policy', 'bundle', 'check', file);
    writeFileSync(file, archiveOf(signed(bundleFiles('v3'), key)));
    expect(await check()).toEqual({
      code: 0,
      stdout: `${file} is valid: v3 (policy ${readBundle().digest.slice(0, 12)}).\n`,
      stderr: '',
    });
    writeFileSync(file, archiveOf(signed(bundleFiles('v3'), signingKey())));
    expect(await check()).toEqual({
      code: 1,
      stdout: '',
      stderr: 'portcullis: No key in POLICY_BUNDLE_PUBLIC_KEY made its signature.\n',
    });
  });

  it.each([
    ['policy', 'bundle', 'check', 'nope.tar.gz'],
    ['policy', 'test', '--bundle', 'nope.tar.gz', 'in'],
    ['replay', '--bundle', 'nope.tar.gz'],
  ])('%s %s … names the file that is missing', async (...args) => {
    expect(await portcullis.run(...args)).toEqual({
      code: 2,
      stdout: '',
      stderr: 'portcullis: nope.tar.gz: there is no such file or folder.\n',
    });
  });

  it('is what other commands judge by', async () => {
    activated();
    const models = await portcullis.runWith(environment, 'models', '--json');
    expect(models.code).toBe(0);
  });
});
