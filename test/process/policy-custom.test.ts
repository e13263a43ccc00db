// A bundle with a package `custom`, made by `portcullis policy build` from test/fixtures/policy/contractors: it only denies, under
// its own ids, and everything that tells of a denial knows them.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ManualClock } from '../../src/domain/time.ts';
import { validator } from '../../src/lib/schemas.ts';
import { readArchive } from '../../src/policy/archive/read-archive.ts';
import { chat, errorOf, hello } from '../support/chat.ts';
import { metricsOf, valuesOf } from '../support/exposition.ts';
import { addRule, startGateway, type TestGateway, tag } from '../support/gateway.ts';
import { draw, fox } from '../support/images.ts';
import { archiveOf } from '../support/policy-bundles.ts';
import { send } from '../support/request.ts';
import { decisionRows } from '../support/rows.ts';
import { portcullis } from './running.ts';

const validatePolicyInput = validator('PolicyInput');

let folder: string;
let gateway: TestGateway;

beforeEach(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'custom-'));
});
afterEach(async () => {
  await gateway.close();
  rmSync(folder, { recursive: true });
});

/** The bundle, with other data of its own and without the fixtures that are about those that it was built with. */
function writeBundle(file: string, contractors: readonly string[]): void {
  const built = readArchive(readFileSync(new URL('../fixtures/policy/contractors.tar.gz', import.meta.url)));
  const { 'fixtures/images.yaml': _, ...files } = Object.fromEntries(built);
  writeFileSync(file, archiveOf({ ...files, 'data.json': JSON.stringify({ custom_data: { contractors } }) }));
}

async function start(contractors: (member: string) => readonly string[]): Promise<void> {
  const file = path.join(folder, 'bundle.tar.gz');
  writeBundle(file, []);
  gateway = await startGateway({ POLICY_BUNDLE: file, POLICY_BUNDLE_POLL_SECONDS: '1' });
  // While the machine is busy it may not be ready, and then says nothing of the policy.
  const digest = async () => Object((await send(gateway.origin, { path: '/ready' })).json).policy?.digest;
  let before: unknown;
  while (before === undefined) before = await digest();
  const members = contractors(gateway.memberId);
  if (members.length === 0) return;
  writeBundle(file, members);
  await expect.poll(digest, { timeout: 60_000 }).toEqual(expect.not.stringContaining(String(before)));
}

const MESSAGE = 'Access denied: contractors make no images (no-images-for-contractors).';

describe('a package custom', { timeout: 120_000 }, () => {
  it('denies under its own id, and the log, the explanation and the metrics have it', async () => {
    await start((member) => [member]);
    const image = await draw(gateway, fox());
    expect([image.status, errorOf(image).message]).toEqual([403, MESSAGE]);
    expect((await chat(gateway, hello())).status).toBe(200);
    const [denied] = decisionRows(gateway);
    expect(JSON.parse(String(denied?.violationsJson))).toEqual([
      {
        scope: 'custom',
        kind: 'custom',
        effect: 'deny',
        ruleIds: ['no-images-for-contractors'],
        values: ['contractors make no images'],
      },
    ]);
    expect(valuesOf(await metricsOf(gateway), 'decisions_total')).toMatchObject({ 'deny deny_custom': 1 });
    const environment = { DATA_DIR: gateway.dataDir, POLICY_BUNDLE: path.join(folder, 'bundle.tar.gz') };
    const shown = await portcullis(['decisions', 'show', String(image.headers['x-decision-id'])], environment);
    expect(shown.stdout).toContain(MESSAGE);
    expect(shown.stdout).toMatch(/every candidate|no-images-for-contractors/);
    const explained = await portcullis(
      ['policy', 'explain', '--key', 'First gateway key', '--model', 'sandbox-image-plus', '--action', 'image'],
      environment,
    );
    expect(explained.stdout).toContain('no-images-for-contractors');
    const found = await portcullis(['decisions', 'list', '--reason', 'deny_custom', '--json'], environment);
    expect(JSON.parse(found.stdout).decisions).toHaveLength(1);
  });

  it('is named by a replay, as the rules are', async () => {
    await start((member) => [member]);
    expect((await draw(gateway, fox())).status).toBe(403);
    const file = path.join(folder, 'without.tar.gz');
    writeBundle(file, []);
    const { stdout } = await portcullis(['replay', '--bundle', file, '--json'], { DATA_DIR: gateway.dataDir });
    const { changed, groups, rules, withoutFacts } = JSON.parse(stdout);
    expect({ permitted: changed.permitted, named: groups[0].ruleIds, rules, withoutFacts }).toEqual({
      permitted: 1,
      named: ['no-images-for-contractors'],
      rules: [
        {
          id: 'no-images-for-contractors',
          scope: 'custom',
          ruleType: 'deny_custom',
          description: 'contractors make no images',
        },
      ],
      withoutFacts: 0,
    });
  });

  it('permits nothing that rules deny, and is never the reason where they do', async () => {
    await start((member) => [member]);
    addRule(gateway, 'key', { ruleType: 'deny_models', ruleValue: { models: ['sandbox-*'] } });
    expect((await chat(gateway, hello())).status).toBe(403);
    expect(errorOf(await draw(gateway, fox())).message).toMatch(/^Access denied: model not allowed: /);
  });

  it('that denies nothing changes nothing', async () => {
    await start(() => []);
    expect((await draw(gateway, fox())).status).toBe(200);
  });

  it('sees the facts of the request', async () => {
    const file = path.join(folder, 'examples.tar.gz');
    writeFileSync(file, readFileSync(new URL('../fixtures/policy/examples.tar.gz', import.meta.url)));
    const clock = new ManualClock('2026-11-25T12:00:00Z');
    gateway = await startGateway({ POLICY_BUNDLE: file }, { clock });
    const ticket = [['x-portcullis-meta-ticket', 'OPS-7']] as const;
    const denial = async (
      body: Readonly<Record<string, unknown>>,
      headers: readonly (readonly [string, string])[] = ticket,
    ) => errorOf(await chat(gateway, hello(body), { headers })).message;

    expect((await chat(gateway, hello(), { headers: ticket })).status).toBe(200);
    expect(await denial({}, [])).toBe(
      'Access denied: name your ticket in the header x-portcullis-meta-ticket (ticket).',
    );
    const stored = decisionRows(gateway).map(({ inputJson }) => JSON.parse(String(inputJson)));
    expect(stored.map(({ facts }) => facts)).toEqual(
      [{ ticket: 'OPS-7' }, {}].map((meta) => ({
        time: { unix: 1795608000, date: '2026-11-25', weekday: 'wednesday', hour: 12, minute: 0 },
        door: 'rest',
        stream: false,
        text_bytes: expect.any(Number),
        modalities: [],
        tool_names: [],
        worst_case_cost: { 'sandbox/sandbox-paid': expect.any(Number) },
        meta,
        key_tags: [],
      })),
    );
    expect(stored.map((input) => validatePolicyInput(input))).toEqual([true, true]);
    expect(await denial({ messages: [{ role: 'user', content: 'a'.repeat(600_000) }] })).toBe(
      'Access denied: the call may cost too much (cost).',
    );
    const tool = { tools: [{ type: 'function', function: { name: 'search' } }] };
    expect((await chat(gateway, hello(tool), { headers: ticket })).status).toBe(200);
    tag(gateway, gateway.keyId, ['contractor']);
    expect(await denial(tool)).toBe('Access denied: contractors call no tools (no-tools-for-contractors).');
    const many = Array.from({ length: 17 }, (_, index) => [`x-portcullis-meta-${index}`, 'a'] as const);
    expect(await denial({}, many)).toBe('At most 16 headers x-portcullis-meta-… of at most 256 characters are read.');
    expect(await denial({}, [['x-portcullis-meta-ticket', 'a'.repeat(257)]])).toMatch(/^At most 16 headers/);
    clock.advance(6 * 3_600_000);
    expect(await denial({})).toBe(
      "Access denied: calls are served on weekdays from 8 to 18 o'clock, UTC (business-hours).",
    );
    // Lists are of no call.
    const list = await send(gateway.origin, {
      path: '/v1/models',
      headers: [['authorization', `Bearer ${gateway.firstRun.gatewayKey}`]],
    });
    expect(Object(list.json).data.length).toBeGreaterThan(0);
  });
});
