import { readFileSync } from 'node:fs';
import type { Config } from '../../config/config.ts';
import { archivedBundle, readArchive } from '../../policy/archive/read-archive.ts';
import { type PolicyBundle, readBundle } from '../../policy/bundle.ts';
import { readKeptArchive, standingIn } from '../../store/bundles/bundle-files.ts';

/**
 * The policy by which the server of a data directory decides, for commands that judge next to it: also in a shell where the
 * server's `POLICY_BUNDLE` is not set. @throws Error when it is set and no server has started with it, or the bundle is missing
 */
export function bundleInForce({ dataDir, policyBundle }: Pick<Config, 'dataDir' | 'policyBundle'>): PolicyBundle {
  const standing = standingIn(dataDir);
  if ('bundle' in standing) {
    return archivedBundle(readArchive(readKeptArchive(dataDir, standing.bundle.active.archive)));
  }
  if (policyBundle === undefined) return readBundle();
  throw new Error(
    'POLICY_BUNDLE is set, but no server has started with it yet on this DATA_DIR: start the server once.',
  );
}

/** The policy in an archive, unverified: for tests of it. @throws BundleRefused, Error when it cannot be read */
export const bundleInFile = (file: string): PolicyBundle => archivedBundle(readArchive(readFileSync(file)));
