// Walks the pages of sign-in and of OAuth in a real browser: `npm run test:browser`. With `--screenshots <folder>` each page is also kept
// as pictures, in light and dark, narrow and wide. With `--require` it is a failure when there is no browser.
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { startVitest } from 'vitest/node';
import { CHROMIUM_NAMES, findChromium } from './chromium.ts';

const { values } = parseArgs({
  options: { screenshots: { type: 'string' }, require: { type: 'boolean', default: false } },
});

if (findChromium() === undefined) {
  process.stderr.write(
    `The pages were NOT walked: there is no ${CHROMIUM_NAMES.join(' or ')} on the PATH. Install one (Debian: apt-get install chromium), or name it by CHROMIUM_PATH.\n`,
  );
  process.exit(values.require ? 1 : 0);
}

if (values.screenshots !== undefined) {
  process.env.SCREENSHOTS = path.resolve(values.screenshots);
  mkdirSync(process.env.SCREENSHOTS, { recursive: true });
}
const vitest = await startVitest('test', [], {
  config: path.join(import.meta.dirname, '../vitest.config.ts'),
  project: ['browser'],
  watch: false,
});
await vitest.close();
