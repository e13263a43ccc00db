// Calls when a member leaves or a project is deleted: the next one is refused.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { acceptInvitation } from '../../../src/admin/sign-in/accept-invitation.ts';
import { loadSecrets } from '../../../src/store/secrets/secrets.ts';
import { bearer, JSON_TYPE } from '../../support/chat.ts';
import { addKey, startGateway, type TestGateway } from '../../support/gateway.ts';
import { send } from '../../support/request.ts';

let gateway: TestGateway;

beforeEach(async () => {
  gateway = await startGateway();
});
afterEach(() => gateway.close());

async function call(key: string): Promise<[status: number, code: unknown]> {
  const body = JSON.stringify({ model: 'sandbox-free', messages: [{ role: 'user', content: 'Hello' }] });
  const headers = [bearer(key), JSON_TYPE] as const;
  const { status, json } = await send(gateway.origin, { method: 'POST', path: '/v1/chat/completions', headers, body });
  return [status, Object(Object(json).error).code];
}

async function master(method: string, path: string, body?: object) {
  const answer = await send(gateway.management, {
    method,
    path: `/v1/master/${path}`,
    headers: [bearer(gateway.firstRun.masterKey), JSON_TYPE],
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return Object(answer.json);
}

describe('the keys of a deleted project', () => {
  it('pass no more, those of others do', async () => {
    const { project } = await master('POST', 'projects', { name: 'Second' });
    const { token } = addKey(gateway, { projectId: project.id });
    expect(await call(token)).toEqual([200, undefined]);

    expect(await master('DELETE', `projects/${project.id}`)).toEqual({ id: project.id, deleted: true });

    expect(await call(token)).toEqual([401, 'invalid_api_key']);
    expect(await call(gateway.firstRun.gatewayKey)).toEqual([200, undefined]);
  });
});

describe("a removed member's keys", () => {
  it('pass no more, nor when they are enabled again', async () => {
    const invited = await master('POST', 'invitations', { email: 'ada@example.com', role: 'owner' });
    const { peppers } = loadSecrets(gateway.dataDir, { create: false });
    const { member } = acceptInvitation(
      gateway.db,
      { token: invited.invitation.token },
      { now: Date.now(), peppers, by: 'cli' },
    );
    const key = addKey(gateway, { createdBy: member.id });
    expect(await call(key.token)).toEqual([200, undefined]);

    await master('DELETE', 'members/ada@example.com');

    expect(await call(key.token)).toEqual([401, 'api_key_disabled']);
    await master('PATCH', `keys/${key.id}`, { status: 'active' });
    expect(await call(key.token)).toEqual([401, 'api_key_disabled']);
    expect(await call(gateway.firstRun.gatewayKey)).toEqual([200, undefined]);
  });
});
