import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { AuditRecord } from '../../../../src/generated/types.ts';
import { validator } from '../../../../src/lib/schemas.ts';
import { ID, START } from '../../../admin/tenants.ts';
import { type ManagementServer, outcome, startManagementServer } from '../management-server.ts';

const validateAuditList = validator('AuditList');

let server: ManagementServer;

beforeEach(async () => {
  server = await startManagementServer();
});
afterEach(() => server.close());

async function audit(query = '', token = server.tokens.owner) {
  const { status, text, body } = await server.request('GET', `/v1/master/audit${query}`, { token });
  const list: unknown = JSON.parse(text);
  if (status !== 200 || !validateAuditList(list)) throw new Error(text);
  return { ...list, body };
}

const names = (entries: readonly AuditRecord[]): unknown[] => entries.map(({ action, target }) => [action, target.id]);

const patch = (id: string, body: object) => server.request('PATCH', `/v1/master/keys/${id}`, { body });

describe('GET /v1/master/audit', () => {
  it('shows who changed what, with both states, and no secret', async () => {
    const made = await server.request('POST', '/v1/master/keys', { body: { projectId: ID.project } });
    const { token, ...key } = JSON.parse(made.text).key;
    expect(token).toMatch(/^pcl_/);
    expect((await audit()).entries).toEqual([
      {
        id: expect.stringMatching(/^aud_[0-9a-f]{32}$/),
        seq: 1,
        createdAt: START,
        actor: {
          kind: 'master_key',
          id: `mkey_${'1'.padStart(32, '0')}`,
          name: 'owner',
          memberId: ID.owner,
          memberEmail: 'owner@example.com',
        },
        action: 'key.create',
        target: { type: 'key', id: key.id, name: null },
        before: null,
        after: key,
        hmac: expect.stringMatching(/^[0-9a-f]{64}$/),
      },
    ]);
  });

  it('shows admins the same, and an organization its own only', async () => {
    await patch(ID.ownerKey, { description: 'New' });
    const mine = await audit();
    expect((await audit('', server.tokens.admin)).entries).toEqual(mine.entries);
    expect(await outcome(server.request('GET', '/v1/master/audit', { token: server.tokens.foreigner }))).toEqual({
      status: 200,
      body: { entries: [], nextCursor: null },
    });
  });

  it('comes in pages, newest first, that go on where the one before ended, whatever is written meanwhile', async () => {
    for (const description of ['a', 'b', 'c']) await patch(ID.ownerKey, { description });
    const first = await audit('?limit=2');
    expect(first.entries.map(({ after }) => after?.description)).toEqual(['c', 'b']);
    await patch(ID.ownerKey, { description: 'd' });
    const second = await audit(`?limit=2&cursor=${first.nextCursor}`);
    expect(second.entries.map(({ after }) => after?.description)).toEqual(['a']);
    expect(second.nextCursor).toBeNull();
  });

  it('can be asked for one action, one target, a time', async () => {
    await patch(ID.ownerKey, { description: 'New' });
    server.clock.advance(1000);
    await patch(ID.ownerKey, { status: 'inactive' });
    server.clock.advance(1000);
    await patch(ID.developerKey, { status: 'inactive' });

    const update = ['key.update', ID.ownerKey];
    const [first, second] = ['key.disable', 'key.disable'].map((action, index) => [
      action,
      [ID.ownerKey, ID.developerKey][index],
    ]);
    const asked = async (query: string) => names((await audit(query)).entries);
    expect(await asked('?action=key.disable')).toEqual([second, first]);
    expect(await asked('?action=key.enable')).toEqual([]);
    expect(await asked(`?targetId=${ID.ownerKey}`)).toEqual([first, update]);
    expect(await asked(`?targetId=${ID.ownerKey}&action=key.disable`)).toEqual([first]);
    expect(await asked('?from=2026-01-31T12:00:01Z')).toEqual([second, first]);
    expect(await asked('?to=2026-01-31T12:00:01Z')).toEqual([update]);
    expect(await asked('?from=2026-01-31T12:00:01Z&to=2026-01-31T14:00:01.001%2B02:00')).toEqual([first]);
    expect(await asked('?from=2026-01-31&to=2026-01-31')).toEqual([second, first, update]);
    expect(await asked('?to=2026-01-30')).toEqual([]);
  });

  it('ends a page early rather than answer with megabytes, and loses nothing', async () => {
    const models = Array.from({ length: 200 }, (_, index) => `${'m'.repeat(400)}${index}`);
    const made: string[] = [];
    for (let count = 0; count < 25; count++) {
      const { text } = await server.request('POST', '/v1/master/organization/iam', {
        body: { ruleType: 'deny_models', ruleValue: { models } },
      });
      made.unshift(JSON.parse(text).rule.id);
    }
    const seen: unknown[] = [];
    const sizes: number[] = [];
    let cursor: string | null = '';
    while (cursor !== null) {
      const { entries, nextCursor } = await audit(`?limit=200${cursor === '' ? '' : `&cursor=${cursor}`}`);
      seen.push(...entries.map(({ target }) => target.id));
      sizes.push(entries.length);
      cursor = nextCursor;
    }
    expect(seen).toEqual(made);
    expect(Math.max(...sizes)).toBeLessThan(15);
  });

  it('shows of a long rule that was changed what it lost and gained', async () => {
    const models = Array.from({ length: 500 }, (_, index) => `acme/model-${index}`);
    const path = '/v1/master/organization/iam';
    const { text } = await server.request('POST', path, { body: { ruleType: 'deny_models', ruleValue: { models } } });
    const { rule } = JSON.parse(text);
    const changed = ['acme/new', ...models.toSpliced(20, 2)];
    await server.request('PATCH', `${path}/${rule.id}`, { body: { ruleValue: { models: changed } } });
    await server.request('PATCH', `${path}/${rule.id}`, { body: { status: 'inactive' } });
    await server.request('PATCH', `${path}/${rule.id}`, {
      body: { ruleType: 'deny_providers', ruleValue: { providers: ['acme'] } },
    });
    await server.request('DELETE', `${path}/${rule.id}`);

    const { entries } = await audit(`?targetId=${rule.id}`);
    const values = entries.map(({ action, before, after }) => [action, before?.ruleValue, after?.ruleValue]);
    expect(values).toEqual([
      ['rule.delete', { providers: ['acme'] }, undefined],
      [
        'rule.update',
        { models: { count: 499, removed: [{ at: 0, entries: changed }] } },
        { providers: { count: 1, added: [{ at: 0, entries: ['acme'] }] } },
      ],
      ['rule.update', { models: { count: 499 } }, { models: { count: 499 } }],
      [
        'rule.update',
        { models: { count: 500, removed: [{ at: 20, entries: ['acme/model-20', 'acme/model-21'] }] } },
        { models: { count: 499, added: [{ at: 0, entries: ['acme/new'] }] } },
      ],
      ['rule.create', undefined, { models }],
    ]);
  });
});
