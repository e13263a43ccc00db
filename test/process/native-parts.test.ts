// An installation that lacks a native part: `npm ci --omit=optional` leaves out that of sharp, a copied folder any of them.
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { cliCommand } from '../../scripts/runtime.js';
import { databasePath } from '../../src/store/db/data-dir.ts';
import { openDatabase } from '../../src/store/db/database.ts';
import { bearer, JSON_TYPE } from '../support/chat.ts';
import { pictured } from '../support/images.ts';
import { type Answer, send } from '../support/request.ts';
import { callRows } from '../support/rows.ts';
import { startUpstream, type TestUpstream, upstreamEnv } from '../support/upstream.ts';
import { ROOT, saying, start } from './running.ts';

const PLATFORM = `${process.platform}-${process.arch}`;

let folder: string;
let dataDir: string;
let upstream: TestUpstream;

beforeEach(async () => {
  upstream = await startUpstream();
  upstream.begin(pictured());
  folder = mkdtempSync(path.join(tmpdir(), 'portcullis-parts-'));
  dataDir = path.join(folder, 'data');
});

afterEach(async () => {
  await upstream.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Copies the program into `folder`, without packages. */
function copyProgram(): void {
  for (const name of ['package.json', 'policy', 'schemas', 'src']) {
    cpSync(path.join(ROOT, name), path.join(folder, name), { recursive: true });
  }
  for (const name of ['portcullis.js', 'runtime.js', 'spawn.js']) {
    cpSync(path.join(ROOT, 'scripts', name), path.join(folder, 'scripts', name));
  }
}

/** Links the packages, but for those in `copied`: they lack the files for which `isAbsent` is true. */
function installPackages(copied: readonly string[], isAbsent: (file: string) => boolean): void {
  const [from, to] = [path.join(ROOT, 'node_modules'), path.join(folder, 'node_modules')];
  mkdirSync(to);
  for (const name of readdirSync(from)) {
    const filter = (file: string): boolean => !isAbsent(file);
    if (copied.includes(name)) cpSync(path.join(from, name), path.join(to, name), { recursive: true, filter });
    else symlinkSync(path.join(from, name), path.join(to, name));
  }
}

const serve = () =>
  start(process.execPath, [...cliCommand.args.slice(0, -1), path.join(folder, 'src/cli.ts'), 'serve'], {
    DATA_DIR: dataDir,
    PORT: '0',
    MANAGEMENT_PORT: '0',
    ACCESS_LOG: 'off',
    ...upstreamEnv('acme', upstream.origin, 'sandbox-image-max', 'sandbox-image-max=5/40'),
  });

it('a start without the part of sharp for this platform says so in one line, and no picture is paid for that could not be shown', async () => {
  copyProgram();
  installPackages(['sharp', '@img'], (file) => /@img\/sharp-/.test(file));
  const running = serve();
  const text = await saying(running, /Try it:[\s\S]* -d '.*'\n/);
  const [, origin = ''] = /gateway {5}(\S+)/.exec(text) ?? [];
  const [, key = ''] = /gateway key {2}(\S+)/.exec(text) ?? [];
  const post = (to: string, body: object): Promise<Answer> =>
    send(origin, { method: 'POST', path: to, headers: [bearer(key), JSON_TYPE], body: JSON.stringify(body) });
  const tool = (name: string): Promise<Answer> =>
    post('/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: { prompt: 'a fox' } } });

  const shown = [await tool('generate-image'), await tool('generate-nano-banana')];
  const draw = (model: string): Promise<Answer> => post('/v1/images/generations', { prompt: 'a fox', model });
  const [passed, drawn] = [await draw('acme/sandbox-image-max'), await draw('sandbox/sandbox-image-plus')];

  expect(shown.map(({ json }) => json)).toEqual(
    shown.map(() =>
      expect.objectContaining({
        result: expect.objectContaining({
          isError: true,
          content: [
            {
              type: 'text',
              text: expect.stringContaining(
                `This gateway cannot show pictures: sharp is not installed for ${PLATFORM}.`,
              ),
            },
          ],
        }),
      }),
    ),
  );
  expect([passed.status, drawn.status]).toEqual([200, 502]);
  expect(drawn.text).toContain(`The sandbox cannot draw: sharp is not installed for ${PLATFORM}.`);
  running.child.kill('SIGTERM');
  const { code, stdout } = await running.ended;
  const lines = stdout.split('\n').filter((line) => line.includes('sharp'));
  expect([code, lines.length]).toEqual([0, 1]);
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({
    level: 40,
    msg: `The tools of /mcp that generate images are refused, and the sandbox draws nothing: sharp is not installed for ${PLATFORM}. Run \`npm ci\` with optional dependencies.`,
  });
  const db = openDatabase(databasePath(dataDir), { readonly: true });
  try {
    expect(callRows({ db }).map(({ statusCode }) => statusCode)).toEqual([200, 502]);
  } finally {
    db.close();
  }
});

it('a start whose sharp cannot be loaded answers pictures with that, not with a fault of the provider', async () => {
  copyProgram();
  installPackages(['sharp', '@img'], () => false);
  const broken = readdirSync(path.join(folder, 'node_modules/@img')).filter((name) => name.startsWith('sharp-libvips'));
  for (const name of broken) rmSync(path.join(folder, 'node_modules/@img', name), { recursive: true });
  const running = serve();
  const text = await saying(running, /Try it:[\s\S]* -d '.*'\n/);
  const [, origin = ''] = /gateway {5}(\S+)/.exec(text) ?? [];
  const [, key = ''] = /gateway key {2}(\S+)/.exec(text) ?? [];

  const { json } = await send(origin, {
    method: 'POST',
    path: '/mcp',
    headers: [bearer(key), JSON_TYPE],
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'generate-image', arguments: { prompt: 'a fox', model: 'acme/sandbox-image-max' } },
    }),
  });

  expect(JSON.stringify(json)).toContain(`This gateway cannot show pictures: sharp cannot be loaded on ${PLATFORM}.`);
});

it('a start without the binary of better-sqlite3 ends with 1 and one line that names it and what to do', async () => {
  copyProgram();
  installPackages(['better-sqlite3'], (file) => file.endsWith('.node'));

  expect(await serve().ended).toEqual({
    code: 1,
    signal: null,
    stdout: '',
    stderr: `portcullis: better-sqlite3 has no binary for ${PLATFORM}: run \`npm ci\` in ${folder}.\n`,
  });
});

it('a checkout without its packages names the first that is missing in one line', async () => {
  copyProgram();

  expect(await serve().ended).toEqual({
    code: 1,
    signal: null,
    stdout: '',
    stderr: expect.stringMatching(
      /^portcullis: the package [\w@/-]+ is not installed: run `npm ci` in \S+portcullis-parts-\w+\.\n$/,
    ),
  });
});
