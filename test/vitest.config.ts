import { configDefaults, defineConfig } from 'vitest/config';
import { GUARD_URL } from './support/network-guard-env.ts';

/** What takes long: attacks, a network that fails, whole processes, commands, random cases. `npm run test:deep` runs these. */
const DEEP = ['test/{attacks,cli,faults,process}/**/*.test.ts', 'test/**/*.property.test.ts'];

const common = {
  root: new URL('..', import.meta.url).pathname,
  pool: 'forks' as const,
  // Workers inherit this; children get it from `childEnv`.
  execArgv: [`--import=${GUARD_URL}`],
  setupFiles: ['test/support/network-guard-setup.ts'],
  testTimeout: 30_000,
  hookTimeout: 30_000,
};

export default defineConfig({
  test: {
    // All cores: the default leaves one to a terminal that nobody watches.
    maxWorkers: '100%',
    projects: [
      {
        test: {
          ...common,
          name: 'quick',
          include: ['test/**/*.test.ts'],
          exclude: [...configDefaults.exclude, ...DEEP],
          isolate: false,
        },
      },
      { test: { ...common, name: 'deep', include: DEEP } },
      // Each page is looked at eight times: light and dark, wide and narrow, by eye and by axe.
      { test: { ...common, name: 'browser', include: ['test/browser/*.walk.ts'], testTimeout: 120_000 } },
    ],
  },
});
