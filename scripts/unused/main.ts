// `npm run unused`: installs knip here, once, and lists the files, exports and packages that nothing uses.
import { execFileSync, spawnSync } from 'node:child_process';
import path from 'node:path';

const folder = import.meta.dirname;
execFileSync('npm', ['ci', '--silent', '--prefix', folder], { stdio: 'inherit', shell: process.platform === 'win32' });
const knip = path.join(folder, 'node_modules/knip/bin/knip.js');
const { status } = spawnSync(
  process.execPath,
  [knip, '--no-progress', '--config', path.join(folder, 'knip.json'), ...process.argv.slice(2)],
  { cwd: path.join(folder, '../..'), stdio: 'inherit' },
);
process.exitCode = status ?? 1;
