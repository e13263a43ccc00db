import { delimiter } from 'node:path';

type Environment = Readonly<Record<string, string>>;

/** The guard as Node loads it before anything else. */
export const GUARD_URL = new URL('./network-guard.js', import.meta.url).href;

/**
 * The environment of a process that a test starts: what it needs to run, to be guarded and to ask no provider by itself, and what
 * the test says. Nothing of the tester's own, who may have real credentials there.
 */
export const childEnv = (env: Environment = {}): Environment => ({
  PATH: process.env.PATH ?? delimiter,
  NODE_OPTIONS: `--import=${GUARD_URL}`,
  CHECK_PROVIDERS: 'off',
  ...(process.env.NETWORK_GUARD_LOG === undefined ? {} : { NETWORK_GUARD_LOG: process.env.NETWORK_GUARD_LOG }),
  ...env,
});
