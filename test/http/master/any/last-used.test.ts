// When a master key was last used, and who called the master API by the access log.
import { readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { getMasterKey } from '../../../../src/store/tenants/master-key-records.ts';
import { ID, owner, startMs } from '../../../admin/tenants.ts';
import { bearer } from '../../../support/chat.ts';
import { newDataDir, startGateway } from '../../../support/gateway.ts';
import { send } from '../../../support/request.ts';
import { type ManagementServer, startManagementServer } from '../management-server.ts';

/** The owner's. */
const masterKeyId = owner.kind === 'master_key' ? owner.masterKeyId : '';

let server: ManagementServer;

beforeEach(async () => {
  server = await startManagementServer();
});

afterEach(() => server.close());

const lastUsed = () =>
  server.store.read((db) => getMasterKey(db, ID.organization, masterKeyId)).then(({ lastUsedAt }) => lastUsedAt);

it('is noted when it is used, and then at most once a minute', async () => {
  const noted = [await lastUsed()];
  for (const milliseconds of [1000, 59_999, 1]) {
    server.clock.advance(milliseconds);
    await server.request('GET', '/v1/master/projects');
    noted.push(await lastUsed());
  }

  expect(noted).toEqual([null, startMs + 1000, startMs + 1000, startMs + 61_000]);
});

it('is not noted for a key that is refused', async () => {
  await server.request('GET', '/v1/master/projects', { token: null });

  expect(await lastUsed()).toBeNull();
});

it('the access log names the master key that was used', async () => {
  const folder = newDataDir();
  const file = path.join(folder, 'access.log');
  const gateway = await startGateway({ ACCESS_LOG: file, LOG_LEVEL: 'error' });
  const headers = [bearer(gateway.firstRun.masterKey)];
  await send(gateway.management, { path: '/v1/master/projects', headers });
  await gateway.close();

  const [line = ''] = readFileSync(file, 'utf8').split('\n');
  rmSync(folder, { recursive: true });

  expect(JSON.parse(line)).toMatchObject({
    path: '/v1/master/projects',
    status: 200,
    masterKeyId: expect.stringMatching(/^mkey_/),
  });
});
