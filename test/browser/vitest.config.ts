import { defineConfig, mergeConfig } from 'vitest/config';
import shared from '../vitest.config.ts';

const { include: _tests, ...test } = shared.test ?? {};

export default mergeConfig(
  { test },
  defineConfig({
    test: {
      include: ['test/browser/*.walk.ts'],
      // Each page is looked at eight times: light and dark, wide and narrow, by eye and by axe.
      testTimeout: 120_000,
    },
  }),
);
