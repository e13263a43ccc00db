// MCP clients as people run them, against a fresh gateway with the sandbox: the Inspector's command line in both eras, the bridge
// `mcp-remote` for clients that speak over stdio, both by key and by OAuth, and curl with the headers of the specification's own example.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { isDeepStrictEqual } from 'node:util';
import { allowAt, postForm, register, tokensOf } from '../http/oauth/application.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';

const TOOLS = ['chat', 'generate-image', 'generate-nano-banana', 'list-models', 'list-image-models'];

/** Arguments of each tool, and what its result shows. */
const CALLS: readonly (readonly [tool: string, args: object, shows: string])[] = [
  ['chat', { model: 'sandbox-paid', messages: [{ role: 'user', content: 'Hello' }] }, 'Hello'],
  ['generate-image', { prompt: 'a red fox', size: '64x32' }, 'image/png'],
  ['generate-nano-banana', { prompt: 'a banana', aspect_ratio: '16:9' }, 'image/png'],
  ['list-models', { family: 'sandbox' }, 'sandbox-paid'],
  ['list-image-models', {}, 'sandbox-image-plus'],
];

const bin = (name: string): string => path.join(import.meta.dirname, 'node_modules/.bin', name);

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;

const namesOf = (result: unknown): unknown[] =>
  isObject(result) && Array.isArray(result.tools) ? result.tools.map((tool: { name: unknown }) => tool.name) : [];

/** Runs a program to its end. `HOME` is a scratch folder: some of them leave files there. */
async function run(command: string, args: string[], home: string): Promise<{ code: unknown; out: string }> {
  const env = { PATH: process.env.PATH, HOME: home };
  const child = spawn(command, args, { env, stdio: ['ignore', 'pipe', 'inherit'] });
  const [out, [code]] = await Promise.all([text(child.stdout), once(child, 'close')]);
  return { code, out };
}

const say = (line: string): void => void process.stdout.write(`${line}\n`);

let failed = 0;

function report(what: string, isRight: boolean, shown: unknown): void {
  say(`${isRight ? 'ok  ' : 'FAIL'} ${what}`);
  if (isRight) return;
  failed += 1;
  say(typeof shown === 'string' ? shown : JSON.stringify(shown, undefined, 2));
}

/** @param by the kind of credential, and the header that has it */
async function inspector(
  { origin }: TestGateway,
  home: string,
  [by, header]: readonly [string, string],
): Promise<void> {
  for (const era of ['legacy', 'modern']) {
    const ask = (...args: string[]) =>
      run(
        process.execPath,
        [
          bin('mcp-inspector'),
          ...['--cli', `${origin}/mcp`, '--transport', 'http', '--header', header],
          ...['--protocol-era', era, '--format', 'json', '-q', ...args],
        ],
        home,
      );
    const listed = await ask('--method', 'tools/list', '--strict');
    report(
      `Inspector by ${by}, ${era}: tools/list, strict`,
      listed.code === 0 && TOOLS.every((name) => listed.out.includes(name)),
      listed.out,
    );
    for (const [tool, args, shows] of CALLS) {
      const { code, out } = await ask(
        '--method',
        'tools/call',
        '--tool-name',
        tool,
        '--tool-args-json',
        JSON.stringify(args),
      );
      report(`Inspector by ${by}, ${era}: ${tool}`, code === 0 && out.includes(shows), out);
    }
  }
}

/** Allows what `mcp-remote` asks for: it prints the address that it would like to open in a browser, and waits for the way back. */
async function allowWhatIsAsked(gateway: TestGateway, printed: AsyncIterable<string>): Promise<void> {
  for await (const line of printed) {
    const [url] = /^https?:\S+\/oauth\/authorize\?\S+$/.exec(line.trim()) ?? [];
    if (url !== undefined) await fetch(await allowAt(gateway, new URL(url)));
  }
}

/** @param by without a header it logs in by OAuth */
async function bridge(gateway: TestGateway, home: string, by: string, ...header: string[]): Promise<void> {
  const child = spawn(
    process.execPath,
    [bin('mcp-remote'), `${gateway.origin}/mcp`, '--transport', 'http-only', '--allow-http', ...header],
    // Without a display it opens no browser.
    { env: { PATH: process.env.PATH, HOME: home }, stdio: ['pipe', 'pipe', 'pipe'] },
  );
  const allowing = allowWhatIsAsked(gateway, createInterface({ input: child.stderr }));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  let id = 0;
  const ask = async (method: string, params: object): Promise<unknown> => {
    id += 1;
    child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
    const answer: unknown = JSON.parse((await lines.next()).value ?? '');
    return isObject(answer) ? answer.result : undefined;
  };
  try {
    await ask('initialize', {
      protocolVersion: '2025-06-18',
      capabilities: {},
      clientInfo: { name: 'test', version: '1' },
    });
    child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' })}\n`);
    const listed = await ask('tools/list', {});
    report(`mcp-remote by ${by}: tools/list`, isDeepStrictEqual(namesOf(listed), TOOLS), listed);
    for (const [name, args, shows] of CALLS) {
      const result = await ask('tools/call', { name, arguments: args });
      report(`mcp-remote by ${by}: ${name}`, JSON.stringify(result).includes(shows), result);
    }
  } finally {
    child.kill();
    await once(child, 'close');
    await allowing;
  }
}

/** An access token of a client that acts by itself. */
async function ownToken({ origin, firstRun }: TestGateway): Promise<string> {
  const machine = { grant_types: ['client_credentials'], response_types: [], redirect_uris: [] };
  const { body: client } = await register(origin, machine, { authorization: `Bearer ${firstRun.gatewayKey}` });
  const { body } = await postForm(origin, '/oauth/token', {
    grant_type: 'client_credentials',
    client_id: String(client.client_id),
    client_secret: String(client.client_secret),
  });
  return tokensOf(body).access_token;
}

async function curl({ origin, firstRun }: TestGateway, home: string): Promise<void> {
  for (const header of [`Authorization: Bearer ${firstRun.gatewayKey}`, `x-api-key: ${firstRun.gatewayKey}`]) {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} });
    const { out } = await run(
      'curl',
      ['-sS', `${origin}/mcp`, '-H', 'Content-Type: application/json', '-H', header, '-d', body],
      home,
    );
    const answer: unknown = JSON.parse(out);
    const names = namesOf(isObject(answer) ? answer.result : undefined);
    report(`curl with ${header.split(':')[0]}: tools/list`, isDeepStrictEqual(names, TOOLS), out);
  }
}

const home = mkdtempSync(path.join(tmpdir(), 'portcullis-clients-'));
const gateway = await startGateway();
try {
  const { gatewayKey } = gateway.firstRun;
  await inspector(gateway, home, ['key', `x-api-key: ${gatewayKey}`]);
  await inspector(gateway, home, ['OAuth', `Authorization: Bearer ${await ownToken(gateway)}`]);
  await bridge(gateway, home, 'key', '--header', `x-api-key:${gatewayKey}`);
  await bridge(gateway, home, 'OAuth');
  await curl(gateway, home);
} finally {
  await gateway.close();
  rmSync(home, { recursive: true, force: true });
}
if (failed > 0) process.exitCode = 1;
