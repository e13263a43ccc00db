// `portcullis policy bundle`, next to a data directory in which bundles have been in force.
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readBundle } from '../../src/policy/bundle.ts';
import { archiveDigest, keepArchive, withActive, writeBundleState } from '../../src/store/bundles/bundle-files.ts';
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
    const archive = archiveOf(signed(bundleFiles(revision), key));
    keepArchive(portcullis.folder, archive);
    const { digest } = readBundle();
    return { archive: archiveDigest(archive), digest, revision, source: '/srv/bundle.tar.gz', activatedAt: at };
  };
  const first = withActive(undefined, known('v1', '2026-11-24T10:00:00.000Z'));
  writeBundleState(portcullis.folder, withActive(first, known('v2', '2026-11-24T11:00:00.000Z')));
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
    const { stdout } = await bundle('status');
    expect(stdout).toMatch(/^in force {2}v1 .*\nbefore {4}v2 .*\nThe one before was left by a rollback/);
    expect(jsonOf(await bundle('rollback', '--json'))).toMatchObject({ active: { revision: 'v2' } });
    const log = jsonOf(await portcullis.run('audit', 'list', '--action', 'policy_bundle.rollback', '--json'));
    expect(Object(log).entries).toHaveLength(2);
    expect(jsonOf(await bundle('status', '--json'))).toMatchObject({
      history: [{ what: 'rolled_back' }, { what: 'rolled_back' }, { what: 'activated' }, { what: 'activated' }],
    });
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

  it('is what other commands judge by', async () => {
    activated();
    const models = await portcullis.runWith(environment, 'models', '--json');
    expect(models.code).toBe(0);
  });
});
