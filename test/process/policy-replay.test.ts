// The same replay by HTTP and on the command line: the current rules, a policy folder, a bundle, and both.
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { cliCommand } from '../../scripts/runtime.js';
import { chat, hello } from '../support/chat.ts';
import { startGateway } from '../support/gateway.ts';
import { send } from '../support/request.ts';
import { start } from './running.ts';

const BUNDLE = fileURLToPath(new URL('../fixtures/policy/late.tar.gz', import.meta.url));

it('judges alike by HTTP and on the command line', { timeout: 120_000 }, async () => {
  const gateway = await startGateway();
  const from = new Date(Date.now() - 3_600_000).toISOString();
  for (const model of ['sandbox-slow', 'sandbox-faulty', 'sandbox-slow']) await chat(gateway, hello({ model }));
  const to = new Date(Date.now() + 3_600_000).toISOString();
  const file = path.join(gateway.dataDir, 'rules.yaml');
  writeFileSync(
    file,
    'organization: { rules: { faulty: { ruleType: deny_models, ruleValue: { models: [sandbox-faulty] } } } }\n',
  );
  const run = async (...args: string[]): Promise<unknown> => {
    const env = { ...cliCommand.env, DATA_DIR: gateway.dataDir };
    const { code, stdout, stderr } = await start(process.execPath, [...cliCommand.args, ...args], env).ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    return JSON.parse(stdout);
  };
  const folder = await run('policy', 'document', file);
  const bundle = readFileSync(BUNDLE, 'base64');
  const changed = [];
  for (const [options, body] of [
    [[], {}],
    [['--folder', file], { folder }],
    [['--bundle', BUNDLE], { bundle }],
    [['--folder', file, '--bundle', BUNDLE], { folder, bundle }],
    [['--recorded', '--bundle', BUNDLE], { recorded: true, bundle }],
  ] as const) {
    const { status, json } = await send(gateway.management, {
      method: 'POST',
      path: '/v1/master/policy/replay',
      headers: [
        ['authorization', `Bearer ${gateway.firstRun.masterKey}`],
        ['content-type', 'application/json'],
      ],
      body: JSON.stringify({ from, to, ...body }),
    });
    expect(status).toBe(200);
    expect(json).toEqual(await run('replay', '--json', '--from', from, '--to', to, ...options));
    changed.push([Object(json).by, Object(json).changed.denied]);
  }
  expect(changed).toEqual([
    ['current', 0],
    ['folder', 1],
    ['current', 2],
    ['folder', 3],
    ['recorded', 2],
  ]);
  await gateway.close();
});
