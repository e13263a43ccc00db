import { expect, it } from 'vitest';
import { createTurns } from '../../src/domain/turns.ts';

/** Takes a turn for each organization while the first one's work goes on; what became of each, in order. */
async function takeAll(organizationIds: readonly string[], ...limits: Parameters<typeof createTurns>) {
  const turns = createTurns(...limits);
  const first = Promise.withResolvers<void>();
  const done: string[] = [];
  const promises = organizationIds.map((id, index) =>
    turns
      .take(id, async () => {
        if (index === 0) await first.promise;
        done.push(id);
        return 'done';
      })
      .catch((error: unknown) => error),
  );
  first.resolve();
  return { outcomes: await Promise.all(promises), done, turns };
}

const REFUSED = expect.objectContaining({ status: 503, code: 'overloaded', headers: { 'retry-after': '5' } });

it('lets two of one organization wait, and leaves the other places to the others', async () => {
  const { outcomes, done } = await takeAll(['org_a', 'org_a', 'org_a', 'org_a', 'org_b', 'org_b', 'org_b']);
  expect(outcomes).toEqual(['done', 'done', 'done', REFUSED, 'done', 'done', REFUSED]);
  expect(done).toEqual(['org_a', 'org_a', 'org_a', 'org_b', 'org_b']);
});

it('lets no more wait than there are places, whoever they are', async () => {
  const { outcomes } = await takeAll(['org_a', 'org_b', 'org_c', 'org_d'], 2);
  expect(outcomes).toEqual(['done', 'done', 'done', REFUSED]);
});

it('gives places back, when work fails as well', async () => {
  const { turns } = await takeAll(['org_a', 'org_a', 'org_a', 'org_a']);
  const fail = () => Promise.reject(new Error('Broken.'));
  const failed = await Promise.allSettled([turns.take('org_a', fail), turns.take('org_a', fail)]);
  expect(failed.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(await turns.take('org_a', async () => 'done')).toBe('done');
});
