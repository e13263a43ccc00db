import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { startExpiringKeys } from '../../src/admin/expire-keys.ts';
import { createKey, getKey } from '../../src/admin/keys.ts';
import { ManualClock } from '../../src/domain/time.ts';
import { cli, ID, owner, pepper, seededDatabase, startMs } from './tenants.ts';

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
});
