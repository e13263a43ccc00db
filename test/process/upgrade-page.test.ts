// The steps of scripts/deploy/README.md, "Upgrade" and "Rollback", as they stand there: from one commit to the next, whose schema is
// newer, and back, in a clone without tags. npm, systemctl and runuser are stand-ins: packages are linked, the unit is a process.
import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { MIGRATIONS } from '../../src/store/migrations/migrate.ts';
import { pages } from '../support/pages.ts';
import { type Ended, ROOT, start } from './running.ts';

const SCHEMA = MIGRATIONS.length;

let folder: string;
let origin: string;
let installed: string;

const git = (cwd: string, ...args: string[]): string =>
  execFileSync('git', ['-c', 'user.name=A', '-c', 'user.email=a@gateway.example', ...args], {
    cwd,
    encoding: 'utf8',
    env: { PATH: process.env.PATH, GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' },
  }).trim();

/** The commands below a heading of the page, at the places of this test. */
function commandsOf(heading: string): string {
  const page = pages.get('scripts/deploy/README.md') ?? '';
  const [, commands = ''] = new RegExp(`\n## ${heading}\n[\\s\\S]*?\`\`\`sh\n([\\s\\S]*?)\`\`\``).exec(page) ?? [];
  return placed(commands);
}

const placed = (text: string): string =>
  text
    .replaceAll('/opt/portcullis', installed)
    .replaceAll('/var/lib/portcullis', path.join(folder, 'data'))
    .replaceAll('/etc/portcullis', path.join(folder, 'etc'));

/** The function `portcullis` of the page. */
function commandLine(): string {
  const [found = ''] = /^portcullis\(\) \{.*\}$/m.exec(pages.get('scripts/deploy/README.md') ?? '') ?? [];
  return placed(found);
}

/** Commands that are not this test's business, found before the real ones. */
function makeStandIns(): string {
  const bin = path.join(folder, 'bin');
  mkdirSync(bin);
  const write = (name: string, text: string): void =>
    writeFileSync(path.join(bin, name), `#!/bin/sh\nset -e\n${text}\n`, { mode: 0o755 });
  symlinkSync(process.execPath, path.join(bin, 'node'));
  write('runuser', 'shift 3\nexec "$@"');
  write('npm', '[ "$*" = "ci --omit=dev" ]');
  const log = path.join(folder, 'log');
  const pid = path.join(folder, 'pid');
  const env = `DATA_DIR=${path.join(folder, 'data')} PORT=0 MANAGEMENT_PORT=0`;
  write(
    'systemctl',
    `case "$1" in
      start) env ${env} node ${installed}/scripts/portcullis.js serve >${log}.now 2>&1 & echo $! >${pid}
        until grep -q '^  management' ${log}.now; do kill -0 "$(cat ${pid})"; sleep 0.1; done ;;
      stop) kill -TERM "$(cat ${pid})"; while kill -0 "$(cat ${pid})" 2>/dev/null; do sleep 0.1; done; cat ${log}.now >>${log} ;;
    esac`,
  );
  return bin;
}

function run(commands: string, bin: string): Promise<Ended> {
  const PATH = `${bin}:${process.env.PATH}`;
  return start('bash', ['-euc', `${commandLine()}\n${commands}`], { PATH, HOME: folder }, folder).ended;
}

/** Commits the next version: one more migration, and its number. */
function releaseNext(): void {
  const list = path.join(origin, 'src/store/migrations/migrate.ts');
  const text = readFileSync(list, 'utf8');
  writeFileSync(
    list,
    text.replace(
      /(?<=MIGRATIONS: readonly string\[\] = \[[^\]]*)\]/,
      ", 'CREATE TABLE of_the_next_version (a INTEGER) STRICT']",
    ),
  );
  const file = path.join(origin, 'package.json');
  writeFileSync(file, readFileSync(file, 'utf8').replace(`"${manifest.version}"`, '"99.0.0"'));
  appendFileSync(path.join(origin, 'CHANGELOG.md'), '\n## 99.0.0\n\nOne more table.\n');
  git(origin, 'commit', '--quiet', '--all', '--message=The next version');
}

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'portcullis-upgrade-'));
  origin = path.join(folder, 'origin');
  installed = path.join(folder, 'installed');
  for (const name of [
    'package.json',
    'CHANGELOG.md',
    'policy',
    'schemas',
    'src',
    'scripts/portcullis.js',
    'scripts/runtime.js',
    'scripts/spawn.js',
    '.gitignore',
  ]) {
    cpSync(path.join(ROOT, name), path.join(origin, name), { recursive: true });
  }
  git(origin, 'init', '--quiet', '--initial-branch=main');
  git(origin, 'add', '.');
  git(origin, 'commit', '--quiet', '--message=This version');
  git(folder, 'clone', '--quiet', 'origin', 'installed');
  // Installed is a commit, not a branch.
  git(installed, 'checkout', '--quiet', '--detach', 'HEAD');
  symlinkSync(path.join(ROOT, 'node_modules'), path.join(installed, 'node_modules'));
  mkdirSync(path.join(folder, 'etc'));
  writeFileSync(path.join(folder, 'etc/portcullis.env'), 'PORT=0\nMANAGEMENT_PORT=0\n');
});

afterEach(() => {
  const pid = path.join(folder, 'pid');
  // A step that failed may have left the server; where it ended, nobody has its number.
  if (existsSync(pid)) execFileSync('sh', ['-c', `kill -TERM ${readFileSync(pid, 'utf8').trim()} 2>/dev/null || true`]);
  rmSync(folder, { recursive: true, force: true });
});

it('an installation goes to the next commit, which has a newer schema, and back, by the commands of the page', async () => {
  const bin = makeStandIns();
  const before = git(origin, 'rev-parse', 'HEAD');
  const started = await run('systemctl start portcullis; portcullis keys create --description Before', bin);
  expect([started.code, started.stderr]).toEqual([0, '']);
  releaseNext();
  const after = git(origin, 'rev-parse', 'HEAD');

  const upgraded = await run(commandsOf('Upgrade'), bin);
  expect([upgraded.code, upgraded.stdout]).toEqual([
    0,
    expect.stringMatching(
      new RegExp(
        `The next version[\\s\\S]*One more table[\\s\\S]*portcullis 99\\.0\\.0 \\(commit ${after.slice(0, 7)}, schema ${SCHEMA + 1}\\)\n$`,
      ),
    ),
  ]);
  expect((await run('portcullis keys create --description Since', bin)).code).toBe(0);

  const back = await run(commandsOf('Rollback'), bin);
  expect([back.code, back.stdout]).toEqual([
    0,
    expect.stringMatching(
      new RegExp(`portcullis ${manifest.version} \\(commit ${before.slice(0, 7)}, schema ${SCHEMA}\\)\n$`),
    ),
  ]);
  const keys = await run('portcullis keys list; systemctl stop portcullis', bin);
  expect([keys.code, keys.stdout.includes('Before'), keys.stdout.includes('Since')]).toEqual([0, true, false]);
  const starts = [...readFileSync(path.join(folder, 'log'), 'utf8').matchAll(/^Portcullis (\S+) \(commit (\w+),/gm)];
  expect(starts.map(([, version, commit]) => [version, commit])).toEqual([
    [manifest.version, before.slice(0, 7)],
    ['99.0.0', after.slice(0, 7)],
    [manifest.version, before.slice(0, 7)],
  ]);
}, 120_000);
