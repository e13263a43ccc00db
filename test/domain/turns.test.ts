import { expect, it } from 'vitest';
import { Turns, type TurnsOptions } from '../../src/domain/turns.ts';

/** Takes a turn for each organization while the first one's work goes on; the result of each, and the order in which they ran. */
async function takeAll(organizationIds: readonly string[], options?: TurnsOptions) {
  const turns = new Turns(options);
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
  const { outcomes } = await takeAll(['org_a', 'org_a', 'org_a', 'org_a', 'org_b', 'org_b', 'org_b']);
  expect(outcomes).toEqual(['done', 'done', 'done', REFUSED, 'done', 'done', REFUSED]);
});

it('serves the organizations in turn, and the work of each in the order in which it came', async () => {
  const { done } = await takeAll(['org_a', 'org_a', 'org_a', 'org_b', 'org_b', 'org_c']);
  expect(done).toEqual(['org_a', 'org_a', 'org_b', 'org_c', 'org_a', 'org_b']);
});

it('lets no more wait than there are places, across all organizations', async () => {
  const { outcomes } = await takeAll(['org_a', 'org_b', 'org_c', 'org_d'], { maxWaiting: 2 });
  expect(outcomes).toEqual(['done', 'done', 'done', REFUSED]);
});

it('runs one piece of work at a time, also when more comes as one ends', async () => {
  const turns = new Turns();
  let running = 0;
  const work = async (): Promise<number> => {
    running += 1;
    const seen = running;
    await new Promise(setImmediate);
    running -= 1;
    return seen;
  };

  const first = turns.take('org_a', work);
  const second = turns.take('org_a', work);
  const third = first.then(() => turns.take('org_b', work));

  expect(await Promise.all([first, second, third])).toEqual([1, 1, 1]);
});

it('gives places back, when work fails as well', async () => {
  const { turns } = await takeAll(['org_a', 'org_a', 'org_a', 'org_a']);
  const fail = () => Promise.reject(new Error('Broken.'));
  const failed = await Promise.allSettled([turns.take('org_a', fail), turns.take('org_a', fail)]);
  expect(failed.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(await turns.take('org_a', async () => 'done')).toBe('done');
});

it('gives up what has waited too long, and its place with it', async () => {
  const turns = new Turns({ maxWaitingEach: 1, maxWaitMs: 10 });
  const first = Promise.withResolvers<void>();
  const running = turns.take('org_a', () => first.promise);

  await expect(turns.take('org_a', async () => 'done')).rejects.toEqual(REFUSED);
  const waiting = turns.take('org_a', async () => 'done');
  first.resolve();

  await running;
  expect(await waiting).toBe('done');
});

it('serves the keys of an organization in turn, within the turns of the organization', async () => {
  const turns = new Turns({ maxWaiting: 16, maxWaitingEach: 6, maxWaitingPart: 3 });
  const first = Promise.withResolvers<void>();
  const done: string[] = [];
  const take = (organization: string, key: string) =>
    turns
      .take(
        organization,
        async () => {
          if (done.push(`${organization} ${key}`) === 1) await first.promise;
        },
        key,
      )
      .catch((error: unknown) => error);
  const loop = ['loop', 'loop', 'loop', 'loop', 'loop'];
  const outcomes = [...loop, 'colleague', 'colleague'].map((key) => take('org_a', key));
  outcomes.push(take('org_b', 'loop'));
  first.resolve();

  expect(await Promise.all(outcomes)).toEqual([...Array(4).fill(undefined), REFUSED, ...Array(3).fill(undefined)]);
  expect(done).toEqual([
    'org_a loop',
    'org_a loop',
    'org_b loop',
    'org_a colleague',
    'org_a loop',
    'org_a colleague',
    'org_a loop',
  ]);
});

it('runs as much at once as it may, of each organization no more than its part', async () => {
  const turns = new Turns({ atOnce: 3, atOnceEach: 2, maxWaiting: 16, maxWaitingEach: 8 });
  const begun: string[] = [];
  const ends: (() => void)[] = [];
  const all = ['a', 'a', 'a', 'a', 'b', 'c', 'c'].map((organization) =>
    turns.take(organization, async () => {
      begun.push(organization);
      await new Promise<void>((end) => ends.push(end));
    }),
  );
  const seen: string[] = [begun.join('')];
  while (ends.length > 0) {
    ends.pop()?.(); // The one that began last.
    await new Promise(setImmediate);
    seen.push(begun.join(''));
  }
  await Promise.all(all);

  expect(seen).toEqual(['aab', 'aabc', 'aabcc', 'aabcc', 'aabcca', 'aabccaa', 'aabccaa', 'aabccaa']);
});
