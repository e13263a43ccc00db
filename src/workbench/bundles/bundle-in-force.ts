import { readFileSync } from 'node:fs';
import type { Config } from '../../config/config.ts';
import { archivedBundle } from '../../policy/archive/archived-bundle.ts';
import { readArchive } from '../../policy/archive/read-archive.ts';
import { type PolicyBundle, readBundle } from '../../policy/bundle.ts';
import { readBundleState, readKeptArchive } from '../../store/bundles/bundle-files.ts';

/**
 * The policy by which the server of a data directory decides, for commands that judge next to it.
 * @throws Error when `POLICY_BUNDLE` is set and no bundle has been in force yet, or it is not there any more
 */
export function bundleInForce({ dataDir, policyBundle }: Pick<Config, 'dataDir' | 'policyBundle'>): PolicyBundle {
  if (policyBundle === undefined) return readBundle();
  const state = readBundleState(dataDir);
  if (state === undefined) {
    throw new Error('POLICY_BUNDLE is set, and no bundle has been in force yet: start the server once.');
  }
  return archivedBundle(readArchive(readKeptArchive(dataDir, state.active.archive)));
}

/** The policy in an archive, unverified: for tests of it. @throws BundleRefused, Error when it cannot be read */
export const bundleInFile = (file: string): PolicyBundle => archivedBundle(readArchive(readFileSync(file)));
