import { defineConfig } from 'vitest/config';
import { GUARD_URL } from './support/network-guard-env.ts';

export default defineConfig({
  test: {
    root: new URL('..', import.meta.url).pathname,
    include: ['test/**/*.test.ts'],
    pool: 'forks',
    // All cores: the default leaves one to a terminal that nobody watches.
    maxWorkers: '100%',
    // Workers inherit this; children get it from `childEnv`.
    execArgv: [`--import=${GUARD_URL}`],
    setupFiles: ['test/support/network-guard-setup.ts'],
    testTimeout: 30_000,
    hookTimeout: 30_000,
  },
});
