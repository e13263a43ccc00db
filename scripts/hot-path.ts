// npm run path: the files and functions of src that one chat call runs, the sandbox, generated code and compiled validators left out, and by how many
// of its functions a file is entered from another one. To compare with an older commit, copy this file into its scripts folder.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { type Profiler, Session } from 'node:inspector/promises';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { readConfig } from '../src/config/config.ts';
import { createContainer } from '../src/container.ts';

const root = path.join(import.meta.dirname, '..');
const WARM_UP = 30;

/** Names of the functions that ran, by their file from the root. */
type Ran = ReadonlyMap<string, readonly string[]>;

function ranIn(coverage: readonly Profiler.ScriptCoverage[]): Ran {
  const ran = new Map<string, readonly string[]>();
  for (const { url, functions } of coverage) {
    if (!url.startsWith('file:')) continue;
    const file = path.relative(root, fileURLToPath(url)).replaceAll(path.sep, '/');
    if (!/^src\/(?!generated\/|providers\/sandbox\/|lib\/schemas\.ts\/)/.test(file)) continue;
    const names = functions.filter(({ ranges: [whole] }) => (whole?.count ?? 0) > 0).map((each) => each.functionName);
    if (names.length > 0) ran.set(file, names);
  }
  return ran;
}

/** The imports between files that ran whose function ran too, each as `file name`. */
function entered(ran: Ran): ReadonlySet<string> {
  const found = new Set<string>();
  for (const file of ran.keys()) {
    const imports = readFileSync(path.join(root, file), 'utf8').matchAll(/^import \{([^}]*)\} from '(\.[^']+)'/gms);
    for (const [, names = '', from = ''] of imports) {
      const target = path.posix.join(path.posix.dirname(file), from);
      const inTarget = ran.get(target) ?? [];
      for (const name of names.split(',').map((each) => each.trim().split(' as ')[0] ?? '')) {
        // V8 names a method `get id` or, of an object, by its place: the last word is the name.
        if (inTarget.some((each) => each.split(' ').at(-1) === name)) found.add(`${target} ${name}`);
      }
    }
  }
  return found;
}

const folder = mkdtempSync(path.join(os.tmpdir(), 'portcullis-path-'));
const variables = { DATA_DIR: folder, PORT: '0', MANAGEMENT_PORT: '0', ACCESS_LOG: path.join(folder, 'access.log') };
const container = await createContainer(readConfig({ ...variables, LOG_LEVEL: 'error' }));

async function call(number: number): Promise<void> {
  const body = { model: 'sandbox-paid', messages: [{ role: 'user', content: `Hello ${number}` }] };
  const answer = await fetch(`${container.gateway.origin}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${container.firstRun?.gatewayKey}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (!answer.ok) throw new Error(await answer.text());
  await answer.text();
}

try {
  for (let number = 0; number < WARM_UP; number += 1) await call(number);
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  await session.post('Profiler.takePreciseCoverage');
  await call(WARM_UP);
  // What follows the answer: the line of the log, counts.
  await new Promise((resolve) => setTimeout(resolve, 20));
  const ran = ranIn((await session.post('Profiler.takePreciseCoverage')).result);
  for (const [file, names] of [...ran].sort(([a], [b]) => (a < b ? -1 : 1))) {
    console.log(`${file}: ${names.map((name) => name || '(anonymous)').join(', ')}`);
  }
  const functions = [...ran.values()].reduce((sum, names) => sum + names.length, 0);
  console.log(
    `${ran.size} files, ${functions} functions, ${entered(ran).size} of them entered from another file by name`,
  );
} finally {
  await container.close();
  rmSync(folder, { recursive: true, force: true });
}
