// The part of whose address IP rules judge that the listener decides: the rest is domain/client-ip.
import { afterEach, expect, it } from 'vitest';
import { chat, hello } from '../support/chat.ts';
import { addRule, startGateway, type TestGateway } from '../support/gateway.ts';
import { callRow } from '../support/rows.ts';

let gateway: TestGateway;

afterEach(() => gateway.close());

/** The addresses under which calls with these headers are recorded. */
async function recorded(...forwarded: (string | undefined)[]): Promise<(string | null)[]> {
  const addresses = [];
  for (const value of forwarded) {
    const headers = value === undefined ? [] : [['x-forwarded-for', value] as const];
    addresses.push(callRow(gateway, await chat(gateway, hello(), { headers })).clientAddress);
  }
  return addresses;
}

it('is the first entry of X-Forwarded-For, trusted or not, while TRUSTED_PROXIES is unset', async () => {
  gateway = await startGateway();

  expect(await recorded('192.0.2.1, 198.51.100.1', undefined)).toEqual(['192.0.2.1', null]);
});

it("is the connection's own with TRUSTED_PROXIES=none, so that nobody can choose it", async () => {
  gateway = await startGateway({ TRUSTED_PROXIES: 'none' });

  expect(await recorded('192.0.2.1', 'nonsense', undefined)).toEqual(['127.0.0.1', '127.0.0.1', '127.0.0.1']);
});

it('is what the trusted hops say with TRUSTED_PROXIES, and a caller in front of them cannot choose it', async () => {
  gateway = await startGateway({ TRUSTED_PROXIES: '127.0.0.0/8,10.0.0.0/8' });
  addRule(gateway, 'key', { ruleType: 'deny_ip_cidrs', ruleValue: { ipCidrs: ['198.51.100.0/24'] } });

  expect(await recorded('192.0.2.1', '203.0.113.9, 192.0.2.1, 10.1.2.3', undefined)).toEqual([
    '192.0.2.1',
    '192.0.2.1',
    '127.0.0.1',
  ]);
  const forged = await chat(gateway, hello(), { headers: [['x-forwarded-for', '192.0.2.1, 198.51.100.1']] });
  expect([forged.status, callRow(gateway, forged).clientAddress]).toEqual([403, '198.51.100.1']);
});
