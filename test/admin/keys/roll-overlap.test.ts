// `keys roll --overlap` (src/admin/README.md, "rolling with an overlap"): two valid secrets, of which the old one ends by itself.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { listAudit } from '../../../src/admin/audit/audit.ts';
import type { Actor } from '../../../src/admin/audit/audit-trail.ts';
import { changeKey, deleteKey, disableKey, enableKey, getKey, rollKey } from '../../../src/admin/keys/keys.ts';
import { hashSecret, type Pepper } from '../../../src/domain/id.ts';
import { ManualClock } from '../../../src/domain/time.ts';
import { loadSecrets, readSecretNeeds } from '../../../src/store/secrets/secrets.ts';
import { chat, errorOf, hello } from '../../support/chat.ts';
import { addKey, startGateway, type TestGateway, type TestKey } from '../../support/gateway.ts';
import { addOwnModels, FLAT } from '../../support/own-models.ts';
import { startUpstream, type TestUpstream } from '../../support/upstream.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const START = '2026-11-21T12:00:00.000Z';

const clock = new ManualClock(START);
const now = (): number => clock.now();
let upstream: TestUpstream;
let gateway: TestGateway;
let actor: Actor;
let pepper: Pepper;

beforeAll(async () => {
  upstream = await startUpstream();
  gateway = await startGateway({ ALLOW_PRIVATE_UPSTREAMS: new URL(upstream.origin).host }, { clock });
  addOwnModels(gateway.db, gateway.firstRun, upstream.origin, gateway.config.allowPrivateUpstreams, { flat: FLAT });
  actor = { kind: 'cli', organizationId: gateway.firstRun.organizationId };
  [pepper] = loadSecrets(gateway.dataDir, { create: false }).peppers;
});
afterAll(async () => {
  await gateway.close();
  await upstream.close();
});
beforeEach(() => clock.set(START));

const roll = (key: TestKey, overlap?: number) =>
  rollKey(gateway.db, actor, key.id, { now: now(), pepper, oldEndsAt: overlap === undefined ? null : now() + overlap })
    .key;

/** What each token is answered, one after the other; a call costs a cent. */
async function ask(...tokens: (string | undefined)[]): Promise<string[]> {
  const answers: string[] = [];
  for (const token of tokens) {
    const answer = await chat(gateway, hello({ model: 'own/flat' }), { token: token ?? '' });
    answers.push(answer.status === 200 ? '200' : `${answer.status} ${errorOf(answer).code}`);
  }
  return answers;
}

const INVALID = '401 invalid_api_key';

describe('a key that is rolled with an overlap', () => {
  it('accepts both secrets, and the old one until it ends', async () => {
    const key = addKey(gateway);
    await ask(key.token);
    const rolled = roll(key, HOUR);
    expect(rolled.previousTokenEndsAt).toBe('2026-11-21T13:00:00.000Z');
    clock.advance(HOUR - 1);
    expect(await ask(key.token, rolled.token)).toEqual(['200', '200']);
    clock.advance(1);
    expect(await ask(key.token, rolled.token)).toEqual([INVALID, '200']);
    expect(getKey(gateway.db, actor, key.id, now()).key.previousTokenEndsAt).toBeNull();
  });

  it('counts both against the same limits', async () => {
    const key = addKey(gateway, { usageLimit: '0.02' });
    const rolled = roll(key, HOUR);
    expect(await ask(key.token, rolled.token, key.token, rolled.token)).toEqual([
      '200',
      '200',
      '401 usage_limit_reached',
      '401 usage_limit_reached',
    ]);
    expect(getKey(gateway.db, actor, key.id, now()).key.usage).toBe('0.02');
  });

  it('keeps one old secret: when it is rolled again, the oldest ends at once; without an overlap all do', async () => {
    const first = addKey(gateway);
    const second = roll(first, DAY);
    const third = roll(first, HOUR);
    expect(await ask(first.token, second.token, third.token)).toEqual([INVALID, '200', '200']);
    const fourth = roll(first);
    expect(await ask(second.token, third.token, fourth.token)).toEqual([INVALID, INVALID, '200']);
  });

  it.each([
    ['disabled', (id: string) => disableKey(gateway.db, actor, id, now())],
    ['disabled in the master API', (id: string) => changeKey(gateway.db, actor, id, { status: 'inactive' }, now())],
  ])('ends both when it is %s, and the old one does not come back', async (_, become) => {
    const key = addKey(gateway);
    const rolled = roll(key, HOUR);
    become(key.id);
    expect(await ask(key.token, rolled.token)).toEqual([INVALID, '401 api_key_disabled']);
    enableKey(gateway.db, actor, key.id, now());
    expect(await ask(key.token, rolled.token)).toEqual([INVALID, '200']);
  });

  it('ends both when it is deleted, or expires', async () => {
    const deleted = addKey(gateway);
    const expiring = addKey(gateway, {}, now() + HOUR, now());
    const rolled = [roll(deleted, DAY), roll(expiring, DAY)].map(({ token }) => token);
    deleteKey(gateway.db, actor, deleted.id, now());
    clock.advance(HOUR);
    expect(await ask(deleted.token, rolled[0])).toEqual([INVALID, INVALID]);
    expect(await ask(expiring.token, rolled[1])).toEqual(['401 api_key_expired', '401 api_key_expired']);
  });

  it('is so for at most 7 days', () => {
    const key = addKey(gateway);
    expect(() => roll(key, 7 * DAY + 1)).toThrow(
      expect.objectContaining({ status: 400, message: 'An overlap is at most 7 days.', param: '/overlap' }),
    );
    expect(roll(key, 7 * DAY).previousTokenEndsAt).toBe('2026-11-28T12:00:00.000Z');
  });

  it('says so in the audit log, without a secret', () => {
    const key = addKey(gateway);
    const rolled = roll(key, HOUR);
    const [entry] = listAudit(gateway.db, actor, { targetId: key.id, action: 'key.roll', limit: 1 }).entries;
    expect(entry).toMatchObject({
      action: 'key.roll',
      before: { previousTokenEndsAt: null },
      after: { previousTokenEndsAt: '2026-11-21T13:00:00.000Z' },
    });
    const text = JSON.stringify(entry);
    for (const token of [key.token, rolled.token ?? '']) {
      expect(text).not.toContain(token);
      expect(text).not.toContain(hashSecret(token, pepper));
    }
  });

  it('needs the pepper of its old secret until that ends', () => {
    const count = (at: number) =>
      readSecretNeeds(gateway.db, at).peppers.find(({ id }) => id === pepper.id)?.count ?? 0;
    const key = addKey(gateway);
    const times = [now() + HOUR - 1, now() + HOUR];
    const before = times.map(count);
    const later = { id: 'later', key: Buffer.alloc(32, 9) };
    rollKey(gateway.db, actor, key.id, { now: now(), pepper: later, oldEndsAt: now() + HOUR });
    expect(before.map((each, index) => each - count(times[index] ?? 0))).toEqual([0, 1]);
  });
});
