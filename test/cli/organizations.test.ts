import { mkdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/domain/time.ts';
import { databasePath } from '../../src/store/db/data-dir.ts';
import { loadSecrets } from '../../src/store/secrets/secrets.ts';
import { createStore } from '../../src/store/store.ts';
import { insertOrganization } from '../../src/store/tenants/tenants.ts';
import { portcullis as command, serve } from '../process/running.ts';
import { bearer, JSON_TYPE } from '../support/chat.ts';
import { newDataDir } from '../support/gateway.ts';
import { send } from '../support/request.ts';
import { type CommandLine, createCommandLine, jsonOf } from './command-line.ts';

const IP_RULE = { ruleType: 'deny_ip_cidrs', ruleValue: { ipCidrs: ['192.0.2.0/24'] } };
const MODEL_RULE = { ruleType: 'deny_models', ruleValue: { models: ['sandbox-slow'] } };

describe('portcullis organizations set-plan', () => {
  it('takes the writing of IP rules from a running server, and nothing else; those that stand stay in force', async () => {
    const DATA_DIR = newDataDir();
    try {
      const server = await serve({ DATA_DIR });
      const master = /master key {3}(pclm_\w+)/.exec(server.said())?.[1] ?? '';
      const rules = (method: string, body?: object, id = '') =>
        send(server.management, {
          method,
          path: `/v1/master/organization/iam${id}`,
          headers: [bearer(master), JSON_TYPE],
          ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        });
      const call = async (): Promise<number> => {
        const body = JSON.stringify({ model: 'sandbox-free', messages: [{ role: 'user', content: 'Hello' }] });
        const headers = [bearer(server.key ?? ''), JSON_TYPE, ['x-forwarded-for', '192.0.2.7']] as const;
        return (await send(server.origin, { method: 'POST', path: '/v1/chat/completions', headers, body })).status;
      };
      const setPlan = async (plan: string): Promise<unknown> => {
        const { organization } = Object(
          jsonOf(await command(['organizations', 'set-plan', plan, '--json'], { DATA_DIR })),
        );
        return organization.plan;
      };

      const made = await rules('POST', IP_RULE);
      const id = `/${Object(made.json).rule.id}`;
      expect([made.status, await call()]).toEqual([201, 403]);

      for (const plan of ['pro', 'free']) {
        expect(await setPlan(plan)).toBe(plan);
        const other = await rules('POST', MODEL_RULE);
        const model = `/${Object(other.json).rule.id}`;
        const bare = { ...IP_RULE, ruleValue: { ipCidrs: ['192.0.2.1'] } };
        expect([other.status, (await rules('POST', bare)).status]).toEqual([201, 400]);
        const refused = [
          await rules('POST', IP_RULE),
          await rules('PATCH', { description: 'Office' }, id),
          await rules('PATCH', IP_RULE, model),
        ];
        expect(refused.map(({ status, json }) => [status, Object(json).error])).toEqual(
          refused.map(() => [
            403,
            {
              message: 'IP rules are part of the enterprise plan only.',
              type: 'invalid_request_error',
              param: null,
              code: 'permission_denied',
            },
          ]),
        );
        expect(await call()).toBe(403);
      }

      expect([(await rules('DELETE', undefined, id)).status, await call()]).toEqual([200, 200]);
      expect(await setPlan('enterprise')).toBe('enterprise');
      expect([(await rules('POST', IP_RULE)).status, await call()]).toEqual([201, 403]);
    } finally {
      rmSync(DATA_DIR, { recursive: true, force: true });
    }
  });
});

describe('portcullis organizations', () => {
  let portcullis: CommandLine;
  beforeAll(async () => {
    portcullis = await createCommandLine();
  });
  afterAll(() => portcullis.close());

  it('knows three plans', async () => {
    const { code, stdout, stderr } = await portcullis.run('organizations', 'set-plan', 'gold');
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain('Allowed choices are free, pro, enterprise.');
  });

  it('says what a database lacks whose first start was cut off', async () => {
    const DATA_DIR = path.join(portcullis.folder, 'cut-off');
    mkdirSync(DATA_DIR, { mode: 0o700 });
    loadSecrets(DATA_DIR, { create: true });
    createStore({ path: databasePath(DATA_DIR), clock: systemClock, create: true }).close();

    expect(await portcullis.runWith({ DATA_DIR }, 'keys', 'list')).toEqual({
      code: 1,
      stdout: '',
      stderr: 'portcullis: There is no organization yet: the first start of the server makes one.\n',
    });
  });

  it('asks which one is meant where there are several, and lists them all', async () => {
    const first = portcullis.first.organizationId;
    const second = `org_${'f'.repeat(32)}`;
    await portcullis.store.write((db, now) => insertOrganization(db, { id: second, name: 'Second' }, now));

    expect((await portcullis.run('organizations', 'set-plan', 'pro')).stderr).toBe(
      `portcullis: Name the organization with --org: ${first} (Default), ${second} (Second).\n`,
    );
    expect(await portcullis.run('organizations', 'set-plan', 'pro', '--org', second)).toMatchObject({ code: 0 });

    const update = ['update', '--org', second];
    expect((await portcullis.run('organizations', ...update, '--rpm', '600', '--tpm', '90000')).stdout).toMatch(
      / PER MINUTE\n.* 600 calls, 90000 tokens\n$/,
    );
    expect(await portcullis.run('organizations', ...update, '--rpm', '0')).toMatchObject({ code: 2 });
    expect(await portcullis.run('organizations', ...update, '--rpm', 'none', '--tpm', 'none')).toMatchObject({
      code: 0,
    });

    const listed = jsonOf(await portcullis.run('organizations', 'list', '--json'));
    const unlimited = { requestsPerMinute: null, tokensPerMinute: null };
    const shown = { createdAt: expect.any(String), updatedAt: expect.any(String), ...unlimited };
    expect(listed).toEqual({
      organizations: [
        { id: first, ...shown, name: 'Default', plan: 'enterprise', newKeyLimits: null },
        { id: second, ...shown, name: 'Second', plan: 'pro', newKeyLimits: null },
      ],
      nextCursor: null,
    });
    const { stdout } = await portcullis.run('organizations', 'list');
    expect(stdout.split('\n').map((line) => line.split(/ {2,}/).slice(0, 3))).toEqual([
      ['NAME', 'ID', 'PLAN'],
      ['Default', first, 'enterprise'],
      ['Second', second, 'pro'],
      [''],
    ]);
  });
});

describe('portcullis organizations update', () => {
  let portcullis: CommandLine;

  beforeAll(async () => {
    portcullis = await createCommandLine();
  });
  afterAll(() => portcullis.close());

  const update = async (...args: string[]) => {
    const outcome = await portcullis.run(
      'organization',
      'update',
      ...args,
      '--org',
      portcullis.first.organizationId,
      '--json',
    );
    return outcome.code === 0 ? jsonOf(outcome) : outcome;
  };

  it('sets what keys that developers make can have at most, and shows it', async () => {
    const limits = ['--new-key-limit', '25', '--new-key-period-limit', '10', '--new-key-period', 'calendar-month'];
    expect(await update(...limits, '--new-key-ttl', '90days')).toMatchObject({
      organization: {
        newKeyLimits: {
          usageLimit: '25',
          periodUsageLimit: '10',
          periodUsageDurationValue: 1,
          periodUsageDurationUnit: 'month',
          periodUsageAlignment: 'calendar',
          ttl: { value: 90, unit: 'days' },
        },
      },
    });
    const { stdout } = await portcullis.run('organizations', 'list');
    expect(stdout).toContain('25 in all, 10 per calendar month, 90 days');
    expect(await update('--new-keys', 'unlimited')).toMatchObject({ organization: { newKeyLimits: { ttl: null } } });
    expect(await update('--new-keys', 'as-most-limited')).toMatchObject({ organization: { newKeyLimits: null } });
  });

  it.each([
    [[], 'Say what to change: --name, --rpm, --tpm, --new-key-limit, --new-keys.'],
    [['--new-keys', 'unlimited', '--new-key-limit', '1'], 'Choose --new-keys or limits of new keys.'],
    [['--new-key-limit', 'lots'], '/newKeyLimits/usageLimit'],
    [['--new-key-period-limit', '1'], '/newKeyLimits/periodUsageDurationValue'],
  ])('refuses %j', async (args, words) => {
    expect(await update(...args)).toMatchObject({
      code: expect.toSatisfy((code) => code !== 0),
      stderr: expect.stringContaining(words),
    });
  });
});

describe('portcullis organizations create', () => {
  it('makes an organization whose master key works at once, and sees nothing of the others', async () => {
    const DATA_DIR = newDataDir();
    try {
      const server = await serve({ DATA_DIR });
      const options = ['organizations', 'create', 'Second', '--owner', 'Owner@Second.example'];
      const made = await command(options, { DATA_DIR });
      const [, id, project, owner, token = ''] =
        /^organization {2}(org_\w+)\nproject {7}(proj_\w+)\nowner {9}(mem_\w+) \(owner@second\.example\)\nmaster key {4}(pclm_\w+)\n\nThis token is shown once/.exec(
          made.stdout,
        ) ?? [];
      const get = async (path: string): Promise<unknown> =>
        (await send(server.management, { path: `/v1/master/${path}`, headers: [bearer(token)] })).json;
      expect(await get('organization')).toMatchObject({ organization: { id, name: 'Second', plan: 'enterprise' } });
      expect(await get('projects')).toMatchObject({ projects: [{ id: project, name: 'Default' }] });
      expect(await get('members')).toMatchObject({ members: [{ id: owner, role: 'owner' }] });
      expect(await get('keys')).toEqual({ keys: [], nextCursor: null });
      expect(Object(await get('audit')).entries.map(({ action }: { action: string }) => action)).toEqual([
        'master_key.create',
        'member.create',
        'project.create',
        'organization.create',
      ]);

      const key = await send(server.management, {
        method: 'POST',
        path: '/v1/master/keys',
        headers: [bearer(token), JSON_TYPE],
        body: JSON.stringify({ projectId: project }),
      });
      const call = await send(server.origin, {
        method: 'POST',
        path: '/v1/chat/completions',
        headers: [bearer(Object(key.json).key.token), JSON_TYPE],
        body: JSON.stringify({ model: 'sandbox-free', messages: [{ role: 'user', content: 'Hello' }] }),
      });
      expect([key.status, call.status]).toEqual([201, 200]);
    } finally {
      rmSync(DATA_DIR, { recursive: true, force: true });
    }
  });

  it('prints all of it as JSON; refuses what is no name and no address', async () => {
    const portcullis = await createCommandLine();
    try {
      const create = (...args: string[]) => portcullis.run('organizations', 'create', ...args);
      expect(jsonOf(await create('Third', '--owner', 'a@third.example', '--json'))).toEqual({
        organization: expect.objectContaining({ name: 'Third' }),
        project: expect.objectContaining({ name: 'Default' }),
        owner: expect.objectContaining({ email: 'a@third.example', role: 'owner' }),
        masterKey: expect.objectContaining({ token: expect.stringMatching(/^pclm_/) }),
      });
      expect(await create(' ', '--owner', 'a@third.example')).toMatchObject({
        code: 2,
        stderr: 'portcullis: The name (" ") must be a text of 1 to 256 characters, not all of them blank.\n',
      });
      expect(await create('Fourth', '--owner', 'nobody')).toMatchObject({
        code: 2,
        stderr: 'portcullis: --owner ("nobody") must be an e-mail address of at most 254 ASCII characters.\n',
      });
      expect(await create('Fourth')).toMatchObject({ code: 2 });
    } finally {
      portcullis.close();
    }
  });
});
