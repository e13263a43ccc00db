import { afterAll, expect, it } from 'vitest';
import { readBundle } from '../../../src/policy/bundle.ts';
import { createJudges, type SubjectTask } from '../../../src/workbench/world/judges.ts';
import { activeMappings } from '../../../src/workbench/world/world.ts';
import { rule } from '../small-world.ts';
import { catalog } from '../worlds.ts';

const mappings = activeMappings({ catalog });
const bundle = readBundle();
const here = createJudges(bundle, mappings, 0);
const threads = createJudges(bundle, mappings, 2);
afterAll(async () => {
  await here.close();
  await threads.close();
});

/** Enough that threads are worth their start. */
const tasks = Array.from({ length: 100 }, (_, index): SubjectTask => {
  const { id = '' } = mappings[index % mappings.length] ?? {};
  const before = [
    rule('0', 'deny_models', { models: [id, `none-${index}`] }),
    rule('1', 'allow_ip_cidrs', { ipCidrs: [`10.${index}.0.0/16`] }),
  ];
  return { before, after: index % 2 === 0 ? before : before.slice(0, 1) };
});

it('threads judge as this one does, in the order of the tasks, and tell how far they are', async () => {
  const progress: number[] = [];
  const judged = await threads.judge(tasks, (done, all) => progress.push(done, all));
  expect(judged).toEqual(await here.judge(tasks));
  expect(progress.slice(-2)).toEqual([100, 100]);
});

it('a rule that cannot be judged fails the whole', async () => {
  const broken = rule('0', 'deny_models', { models: ['gpt-5'] });
  const wrong: SubjectTask = { before: [{ ...broken, id: '' }], after: [] };
  await expect(here.judge([wrong])).rejects.toThrow('Rule ids must be unique and not empty.');
});
