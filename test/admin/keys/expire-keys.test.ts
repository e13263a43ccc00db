import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { createKey, getKey, startExpiringKeys } from '../../../src/admin/keys/keys.ts';
import { ManualClock } from '../../../src/domain/time.ts';
import { listAuditEntries } from '../../../src/store/audit/audit-entries.ts';
import { cli, ID, owner, pepper, seededDatabase, startMs } from '../tenants.ts';

it('the job marks a key inactive once its time to live has passed, and no other key', async () => {
  const db = seededDatabase();
  const clock = new ManualClock(startMs);
  const make = (expiresAt: number) =>
    createKey(db, owner, { projectId: ID.project }, { now: startMs, pepper, expiresAt }).key.id;
  const [short, long] = [make(startMs + 60_000), make(startMs + 120_000)];
  const status = () => [short, long].map((id) => getKey(db, cli, id, clock.now()).key.status);
  const stop = startExpiringKeys({ write: async (operation) => operation(db, clock.now()) }, 5);

  await sleep(50);
  const before = status();
  clock.advance(60_000);
  while (status()[0] === 'active') await sleep(5);

  stop();
  expect([before, status()]).toEqual([
    ['active', 'active'],
    ['inactive', 'active'],
  ]);
  const { items } = listAuditEntries(db, ID.organization, { action: 'key.expire' }, { limit: 10 });
  expect(
    items.map(({ actorKind, actorId, targetId, beforeJson, afterJson }) => ({
      actor: [actorKind, actorId],
      targetId,
      states: [beforeJson, afterJson].map((json) => {
        const { status: is, state } = JSON.parse(json ?? '');
        return [is, state];
      }),
    })),
  ).toEqual([
    {
      actor: ['job', 'expire_keys'],
      targetId: short,
      states: [
        ['active', 'expired'],
        ['inactive', 'expired'],
      ],
    },
  ]);
});

it('keys that expire at one instant are marked in several transactions, one run after another', async () => {
  const db = seededDatabase();
  const clock = new ManualClock(startMs);
  const many = 120;
  db.transaction(() => {
    for (let made = 0; made < many; made++) {
      createKey(db, owner, { projectId: ID.project }, { now: startMs, pepper, expiresAt: startMs + 1 });
    }
  });
  clock.advance(1);
  const marked: number[] = [];
  const stop = startExpiringKeys(
    {
      write: async (operation) => {
        await sleep(10);
        const result = operation(db, clock.now());
        marked.push(Number(result));
        return result;
      },
    },
    1,
  );
  while (marked.length < 3) await sleep(5);
  stop();
  expect(marked.slice(0, 3)).toEqual([50, 50, 20]);
});
