// `npm run test:crash`: kills the serving process at random moments under load, and looks at what is left in the ledger.
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { createProgress } from '../../scripts/bench/progress.ts';
import { startUpstream } from '../support/upstream.ts';
import { answering } from './answering.ts';
import { type Evidence, findFaults } from './invariants.ts';
import { Load, type LoadKey } from './load.ts';
import { Random } from './random.ts';
import { Serving } from './serving.ts';
import { createWorld, type World } from './world.ts';

const CLIENTS = 24;

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '20' },
    seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
  },
});
const [rounds, seed] = [Number(values.rounds), Number(values.seed)];
if (!Number.isInteger(rounds) || rounds < 1 || !Number.isInteger(seed)) {
  throw new Error('npm run test:crash -- [--rounds N] [--seed N]');
}

const day = { periodUsageDurationValue: 1, periodUsageDurationUnit: 'day' } as const;

/** Fresh keys for a round, with room for some of its calls: a call costs about 0.003 USD. */
const roundKeys = (world: World): [LoadKey, ...LoadKey[]] => [
  world.addKey({ usageLimit: '0.05' }),
  world.addKey({ usageLimit: '0.3' }),
  world.addKey({ periodUsageLimit: '0.1', ...day }),
  world.addKey({ usageLimit: '0.2', periodUsageLimit: '0.15', ...day }),
  world.addKey({}),
];

/** Load until the process is killed under it; now and then it is killed once more while it starts again. */
async function crash(world: World, serving: Serving, random: Random, load: Load): Promise<Serving> {
  const running = load.run(await serving.origin(), CLIENTS);
  await Promise.race([running, load.answering]);
  await Promise.race([running, sleep(random.between(0, 600))]);
  load.end();
  await serving.kill();
  await running;
  if (random.chance(0.15)) {
    const hasty = new Serving(world.env);
    await sleep(random.between(0, 700));
    await hasty.kill();
  }
  return new Serving(world.env);
}

const random = new Random(seed);
const progress = createProgress(process.stderr);
const upstream = await startUpstream();
const world = await createWorld(upstream.origin);
process.stdout.write(`seed ${seed}, ${rounds} rounds\n`);
let serving = new Serving(world.env);
const all: Evidence[] = [];
const totals = { acknowledged: 0, settled: 0, recovered: 0 };
const statuses = new Map<number, number>();
const begun = performance.now();
try {
  for (let round = 1; round <= rounds; round += 1) {
    const keys = roundKeys(world);
    const load = new Load(random, round, keys);
    const dispatched = new Set<string>();
    upstream.begin(answering(random, dispatched));
    serving = await crash(world, serving, random, load);
    await serving.origin();

    const evidence = { keyIds: keys.map(({ id }) => id), acknowledged: load.acknowledged, dispatched };
    const [faults, counts] = findFaults(world.db, evidence);
    if (faults.length > 0) throw new Error(`round ${round} of seed ${seed}:\n${faults.slice(0, 20).join('\n')}`);
    all.push(evidence);
    totals.acknowledged += load.acknowledged.length;
    totals.settled += counts.settled;
    totals.recovered += counts.recovered;
    for (const [status, count] of load.statuses) statuses.set(status, (statuses.get(status) ?? 0) + count);
    progress.say(
      `round ${round} of ${rounds}: ${totals.acknowledged} calls acknowledged, ${totals.recovered} recovered`,
    );
  }
  // What later crashes and recoveries might have done to earlier rounds.
  const late = all.flatMap((evidence) => findFaults(world.db, evidence)[0]);
  if (late.length > 0) throw new Error(`after all rounds of seed ${seed}:\n${late.slice(0, 20).join('\n')}`);
} finally {
  progress.end();
  await serving.kill();
  await upstream.close();
  world.close();
}
const told = [...statuses].sort(([a], [b]) => a - b).map(([status, count]) => `${count} × ${status}`);
process.stdout.write(
  `${rounds} crashes in ${Math.round((performance.now() - begun) / 1000)} s: ${totals.acknowledged} calls acknowledged (answers: ` +
    `${told.join(', ')}), ${totals.settled} settled, ${totals.recovered} recovered; every invariant held.\n`,
);
