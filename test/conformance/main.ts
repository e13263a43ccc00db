// The official MCP conformance suite, against the gateway as it is and against the same gateway with the tools that the suite
// calls. Scenarios of features that the gateway does not have are in the baselines, each with its reason; a scenario that fails
// outside them, or passes inside them, fails this run.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { parse } from 'yaml';
import type { Overrides } from '../../src/container.ts';
import { allowAt, register } from '../http/oauth/application.ts';
import { forwardTo } from '../support/forward.ts';
import { startGateway } from '../support/gateway.ts';
import { serveFixture } from '../support/mcp-fixture.ts';

const folder = import.meta.dirname;
const suite = path.join(folder, 'node_modules/@modelcontextprotocol/conformance');

const say = (line: string): void => void process.stdout.write(`${line}\n`);

/** The suite sends no key: each request gets one on its way. `Host` and `Origin` stay as they are. */
async function withKey(origin: string, key: string): Promise<{ url: string; close(): void }> {
  const server = createServer(forwardTo(() => origin, { 'x-api-key': key }));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return {
    url: `http://127.0.0.1:${address.port}/mcp`,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** Names in the list `server` of a YAML file, with the checks that some are narrowed to. */
function serverList(file: string): string[] {
  const { server }: { server: string[] } = parse(readFileSync(file, 'utf8'));
  return server;
}

async function run(build: 'product' | 'fixture', revision: string): Promise<boolean> {
  const overrides: Overrides = { prepareMcp: build === 'fixture' ? serveFixture : undefined };
  const gateway = await startGateway({ RATE_LIMIT_MCP_PER_MINUTE: 'off' }, overrides);
  const keyed = await withKey(gateway.origin, gateway.firstRun.gatewayKey);
  const results = mkdtempSync(path.join(tmpdir(), 'portcullis-conformance-'));
  try {
    const baseline = path.join(folder, 'baselines', `${build}-${revision}.yml`);
    const args = [
      'server',
      '--url',
      keyed.url,
      '--requirements',
      revision,
      '--expected-failures',
      baseline,
      '-o',
      results,
    ];
    const child = spawn(process.execPath, [path.join(suite, 'dist/index.js'), ...args], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [output, [exitCode]] = await Promise.all([text(child.stdout), once(child, 'close')]);
    const required = serverList(path.join(suite, 'requirements', `${revision}.yaml`));
    const failing = serverList(baseline);
    const passing = required.filter((name) => !failing.includes(name));
    say(`${build}, ${revision}: ${passing.length} of ${required.length} scenarios expected: ${passing.join(', ')}`);
    if (exitCode !== 0) say(output.slice(output.indexOf('=== SUMMARY')));
    say(exitCode === 0 ? '  as expected' : '  NOT as expected');
    return exitCode === 0;
  } finally {
    keyed.close();
    await gateway.close();
    rmSync(results, { recursive: true });
  }
}

/** A port that is free now. */
async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

const AUTHORIZE = /https?:\/\/\S+\/oauth\/authorize\?\S+/;

/** The suite's own check of an authorization server: its metadata, and a login by code, which the owner allows. */
async function runAuthorization(): Promise<boolean> {
  const gateway = await startGateway();
  const port = await freePort();
  try {
    const redirect = `http://127.0.0.1:${port}/callback`;
    const metadata = { redirect_uris: [redirect], token_endpoint_auth_method: 'none' };
    const { body } = await register(gateway.origin, metadata);
    const args = ['authorization', '--url', gateway.origin, '--client-id', String(body.client_id), '-p', String(port)];
    const child = spawn(
      process.execPath,
      [path.join(suite, 'dist/index.js'), ...args, '--resource', `${gateway.origin}/mcp`],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    let output = '';
    let allowed: Promise<unknown> | undefined;
    child.stdout.setEncoding('utf8').on('data', (piece: string) => {
      output += piece;
      const [url] = AUTHORIZE.exec(output) ?? [];
      if (url !== undefined && output.includes(`${url}\n`)) {
        allowed ??= allowAt(gateway, new URL(url)).then((callback) => fetch(callback));
      }
    });
    const [exitCode] = await once(child, 'close');
    await allowed;
    say(`authorization server: ${exitCode === 0 ? 'as expected' : 'NOT as expected'}`);
    say(output.slice(output.indexOf('=== SUMMARY')));
    return exitCode === 0;
  } finally {
    await gateway.close();
  }
}

for (const build of ['product', 'fixture'] as const) {
  for (const revision of ['2025-11-25', '2026-07-28']) {
    if (!(await run(build, revision))) process.exitCode = 1;
  }
}
if (!(await runAuthorization())) process.exitCode = 1;
