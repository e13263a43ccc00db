import { readFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createCatalog } from '../../src/catalog/catalog.ts';
import { systemClock } from '../../src/domain/time.ts';
import { readWorld } from '../../src/workbench/world/world.ts';
import { type LoggedCall, logDecision } from '../support/logged-decisions.ts';
import { type CommandLine, createCommandLine, jsonOf } from './command-line.ts';

const KEY = 'First gateway key';
const DAY = 86_400_000;
const NOW = Date.now();
const catalog = createCatalog({ sandbox: true, upstreams: [], clock: systemClock });
const iso = (time: number): string => new Date(time).toISOString();

let portcullis: CommandLine;
beforeEach(async () => {
  portcullis = await createCommandLine();
});
afterEach(() => portcullis.close());

/** Calls of the first key, decided under the current rules. @returns the ids of the decisions */
function log(...calls: readonly Omit<LoggedCall, 'keyId'>[]): Promise<readonly string[]> {
  const { organizationId } = portcullis.first;
  return portcullis.store.write((db) => {
    const world = readWorld(db, { catalog, servedProviders: new Set(['sandbox']) }, organizationId);
    const [key] = world.keys.values();
    if (key === undefined) throw new Error('there is no key');
    return calls.map((call) => logDecision(db, world, { ...call, keyId: key.id }));
  });
}

const served = (model: string, time: number, address?: string): Omit<LoggedCall, 'keyId'> => ({
  ...{ model, time, targets: [`sandbox/${model}`] },
  ...(address === undefined ? {} : { address }),
});

async function addRule(...rule: readonly string[]): Promise<string> {
  const added = await portcullis.run('rules', 'add', '--key', KEY, ...rule, '--json');
  return JSON.parse(added.stdout).rule.id;
}

const tighten = (...args: readonly string[]) => portcullis.run('policy', 'tighten', ...args);

/** Of the models that can be reached one moderates, which no rule on models keeps from anyone. */
const told = (calls: string, since: number, models: string, reachable = 7): string =>
  `portcullis: ${calls} since ${iso(since)}: ${models}, ${reachable} reachable; 1 provider used, 1 reachable.\n` +
  'portcullis: Verified by replay: with the draft, every one of these calls is still permitted at the provider that served it.\n';

it('proposes the models, providers and addresses of the last days, in place of the rules of these kinds', async () => {
  const wide = await addRule('allow_models', 'sandbox-*');
  await addRule('deny_models', 'sandbox-faulty');
  await log(
    served('sandbox-slow', NOW - 3 * DAY, '192.0.2.9'),
    served('sandbox-paid', NOW - DAY, '192.0.2.6'),
    served('sandbox-free', NOW - 2000, '192.0.2.7'),
    served('sandbox-free', NOW - 1000, '192.0.2.7'),
    { model: 'sandbox-faulty', time: NOW - 500, address: '192.0.2.99' },
  );
  const head = `# From 3 calls of the key ${KEY} since ${iso(NOW - DAY)}.
rules:
  - id: ${wide}
    remove: true
  - key: ${KEY}
    ruleType: allow_models
    ruleValue:
      models: [sandbox-free, sandbox-paid]
  - key: ${KEY}
    ruleType: allow_providers
    ruleValue:
      providers: [sandbox]
`;
  const stderr = told('3 calls', NOW - DAY, '2 models used', 6);
  expect(await tighten(KEY, '--days', '2')).toEqual({ code: 0, stderr, stdout: head });
  expect(await tighten(KEY, '--days', '2', '--addresses', '-o', 'draft.yaml')).toEqual({
    code: 0,
    stderr,
    stdout: 'Wrote 4 changes of rules to draft.yaml.\n',
  });
  const file = path.join(portcullis.folder, 'draft.yaml');
  expect(readFileSync(file, 'utf8')).toBe(`${head}  - key: ${KEY}
    ruleType: allow_ip_cidrs
    ruleValue:
      ipCidrs: [192.0.2.6/31]
`);
  expect(jsonOf(await portcullis.run('replay', '--draft', file, '--since', '2d', '--json'))).toMatchObject({
    decisions: 4,
    unchanged: 4,
    warnings: [],
  });
  expect(jsonOf(await portcullis.run('policy', 'diff', '--draft', file, '--json'))).toMatchObject({ gained: 0 });
});

it('finds nothing to propose where the rules are as tight', async () => {
  await addRule('allow_models', 'sandbox-paid');
  await addRule('allow_providers', 'sandbox');
  await log(served('sandbox-paid', NOW - DAY));
  expect(await tighten(KEY, '--addresses')).toEqual({
    code: 0,
    stdout: '',
    stderr:
      told('1 call', NOW - DAY, '1 model used', 2) +
      'portcullis: note: allow_ip_cidrs is left out: the client address of 1 call is unknown.\n' +
      'portcullis: The current rules are already as tight: nothing to propose.\n',
  });
});

it('takes members and groups, and free models only where all of the use is free', async () => {
  await portcullis.run('groups', 'create', 'contractors');
  await log(served('sandbox-free', NOW - DAY));
  const nobody =
    'portcullis: In the last 30 days no call of the group contractors was served: there is nothing to propose.\n';
  expect(await tighten('contractors')).toEqual({ code: 1, stdout: '', stderr: nobody });
  await portcullis.run('groups', 'add', 'contractors', '--member', 'owner@localhost');
  const rules = (owner: string): string =>
    [
      ['allow_models', 'models: [sandbox-free]'],
      ['allow_providers', 'providers: [sandbox]'],
      ['allow_pricing', 'pricingType: free'],
    ]
      .map(([type, value]) => `  - ${owner}\n    ruleType: ${type}\n    ruleValue:\n      ${value}\n`)
      .join('');
  const stderr = told('1 call', NOW - DAY, '1 model used');
  const text = (name: string, owner: string): string =>
    `# From 1 call of the ${name} since ${iso(NOW - DAY)}.\nrules:\n${rules(owner)}`;
  expect(await tighten('contractors')).toEqual({
    ...{ code: 0, stderr },
    stdout: text('group contractors', 'group: contractors'),
  });
  expect(await tighten('Owner@localhost')).toEqual({
    ...{ code: 0, stderr },
    stdout: text('member owner@localhost', 'member: owner@localhost'),
  });
});

it('takes for no use what was denied, what reached no provider, and what is denied now', async () => {
  const no =
    'portcullis: In the last 30 days no call of the key First gateway key was served: there is nothing to propose.\n';
  await log({ model: 'sandbox-free', time: NOW - DAY });
  expect(await tighten(KEY)).toEqual({ code: 1, stdout: '', stderr: no });
  const [decision] = await log(served('sandbox-paid', NOW - 1000));
  await addRule('deny_models', 'sandbox-paid');
  expect(await tighten(KEY)).toEqual({
    code: 1,
    stdout: '',
    stderr: `portcullis: note: 1 call left out, which the current rules no longer permit: ${decision}.\n${no}`,
  });
  expect(await tighten('nobody')).toEqual({
    code: 1,
    stdout: '',
    stderr: 'portcullis: There is no key, member or group "nobody".\n',
  });
  expect(await tighten(KEY, '--days', '0')).toEqual({
    code: 2,
    stdout: '',
    stderr: "portcullis: --days <n>: '0' is not valid. It must be a whole number of days, from 1.\n",
  });
});
