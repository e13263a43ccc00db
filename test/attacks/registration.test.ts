// The threat: anyone may register an application, so that a stranger fills the room for everyone, or registers one that harms who allows
// it. The defence: each address and each key has a share of the room, and metadata is checked for its types, schemes and hosts before
// anything else sees it.
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { REDIRECT, register } from '../http/oauth/application.ts';
import { addKey, startGateway, type TestGateway } from '../support/gateway.ts';

let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startGateway({ TRUSTED_PROXIES: '127.0.0.1/32' });
});
afterAll(() => gateway.close());

const from = (address: string, headers: Readonly<Record<string, string>> = {}) =>
  register(gateway.origin, { redirect_uris: [REDIRECT] }, { 'x-forwarded-for': address, ...headers });

const MINUTE = 60_000;

describe('the room for applications that nobody has allowed yet', () => {
  afterEach(() => {
    gateway.db.connection.exec("DELETE FROM oauth_items WHERE model = 'Client'");
  });

  /** So many that wait, as if they had been registered before. */
  const fill = (registrant: string, count: number, age = MINUTE): void => {
    const insert = gateway.db.connection.prepare(
      "INSERT INTO oauth_items (model, id, payloadJson, createdAt, expiresAt, registrant) VALUES ('Client', ?, '{}', ?, 9e15, ?)",
    );
    for (let at = 0; at < count; at++) insert.run(`${registrant} ${at}`, Date.now() - age - at, registrant);
  };
  const waiting = (registrant: string): unknown =>
    gateway.db.connection
      .prepare("SELECT count(*) FROM oauth_items WHERE model = 'Client' AND registrant = ?")
      .pluck()
      .get(registrant);

  it('is not closed by one stranger: others register, and so do those at the same address who show a key', async () => {
    fill('network:192.0.2.1', 100);
    const key = addKey(gateway);
    const refused = await from('192.0.2.1');
    expect([refused.status, refused.body]).toEqual([
      429,
      {
        error: 'temporarily_unavailable',
        error_description:
          '100 applications that you have registered wait for someone to allow them. Allow one, or try again in an hour.',
      },
    ]);
    expect([
      (await from('192.0.2.2')).status,
      (await from('192.0.2.1', { authorization: `Bearer ${key.token}` })).status,
    ]).toEqual([201, 201]);
  });

  it('is not closed by many strangers: the address with the most gives way', async () => {
    for (let at = 0; at < 10; at++) fill(`network:192.0.2.${at}`, at === 5 ? 100 : 99);
    fill('network:198.51.100.1', 9);
    expect((await from('198.51.100.7')).status).toBe(201);
    expect([waiting('network:192.0.2.5'), waiting('network:198.51.100.1'), waiting('network:198.51.100.7')]).toEqual([
      99, 9, 1,
    ]);
  });

  it('has a share for each key, which other keys and addresses do not touch', async () => {
    const [full, other] = [addKey(gateway), addKey(gateway)];
    fill(`key:${full.id}`, 100);
    const by = ({ token }: typeof full) => from('203.0.113.1', { authorization: `Bearer ${token}` });
    expect([(await by(full)).status, (await by(other)).status, (await from('203.0.113.1')).status]).toEqual([
      429, 201, 201,
    ]);
  });

  it('is free again after an hour, in which the oldest waits for its consent', async () => {
    fill('network:192.0.2.1', 100, 61 * MINUTE);
    expect((await from('192.0.2.1')).status).toBe(201);
    expect(waiting('network:192.0.2.1')).toBe(100);
  });

  it('is not exceeded by requests of the same moment', async () => {
    fill('network:192.0.2.9', 98);
    const answers = await Promise.all(Array.from({ length: 6 }, () => from('192.0.2.9')));
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 201, 429, 429, 429, 429]);
  });
});
