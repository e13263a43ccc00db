// `npm run test:crash`: kills the serving process at random moments under load, and looks at what is left in the ledger.
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { createProgress } from '../../scripts/bench/progress.ts';
import { startUpstream } from '../support/upstream.ts';
import { answering } from './answering.ts';
import { type Counts, type Evidence, findFaults } from './invariants.ts';
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

/**
 * Fresh keys for a round, some with room for a few of its calls and some for many: a call costs about 0.003 USD. Two of them
 * share the budget of a project; in every other round all of them share those of their owner and the organization.
 */
function roundKeys(world: World): [LoadKey, ...LoadKey[]] {
  const shared = world.leaveRoom({ total: '0.06', daily: '0.04' });
  return [
    world.addKey({}),
    ...['0.005', '0.012', '0.05', '0.3'].map((usageLimit) => world.addKey({ usageLimit })),
    ...['0.005', '0.02', '0.1'].map((periodUsageLimit) => world.addKey({ periodUsageLimit, ...day })),
    world.addKey({ usageLimit: '0.02', periodUsageLimit: '0.015', ...day }),
    world.addKey({ usageLimit: '0.2', periodUsageLimit: '0.15', ...day }),
    world.addKey(shared),
    world.addKey({ ...shared, usageLimit: '0.05' }),
  ];
}

/** Load until the process is killed under it; now and then it is killed once more while it starts again. */
async function crash(world: World, serving: Serving, random: Random, load: Load): Promise<Serving> {
  const running = load.run(await serving.origin(), CLIENTS);
  await Promise.race([running, load.answering]);
  await Promise.race([running, sleep(random.between(0, 800))]);
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

/** What all rounds have come to. */
class Totals {
  acknowledged = 0;
  settled = 0;
  recovered = 0;
  readonly #statuses = new Map<number, number>();

  add({ acknowledged, statuses }: Load, counts: Counts): void {
    this.acknowledged += acknowledged.length;
    this.settled += counts.settled;
    this.recovered += counts.recovered;
    for (const [status, count] of statuses) this.#statuses.set(status, (this.#statuses.get(status) ?? 0) + count);
  }

  toString(): string {
    const answers = [...this.#statuses].sort(([a], [b]) => a - b).map(([status, count]) => `${count} × ${status}`);
    return `${this.acknowledged} calls acknowledged (answers: ${answers.join(', ')}), ${this.settled} settled, ${this.recovered} recovered`;
  }
}

const random = new Random(seed);
const progress = createProgress(process.stderr);
const upstream = await startUpstream();
const world = await createWorld(upstream.origin);
let serving = new Serving(world.env);
const seen: Evidence[] = [];
const totals = new Totals();

async function playRound(round: number): Promise<string[]> {
  world.limitEverything(round % 2 === 0);
  const keys = roundKeys(world);
  const load = new Load(random, round, keys);
  const dispatched = new Set<string>();
  upstream.begin(answering(random, dispatched, load.sent));
  serving = await crash(world, serving, random, load);
  await serving.origin();
  const evidence = { keyIds: keys.map(({ id }) => id), acknowledged: load.acknowledged, dispatched };
  seen.push(evidence);
  const [faults, counts] = findFaults(world.db, evidence);
  totals.add(load, counts);
  progress.say(`round ${round} of ${rounds}: ${totals.acknowledged} calls acknowledged, ${totals.recovered} recovered`);
  return faults;
}

async function play(): Promise<string[]> {
  for (let round = 1; round <= rounds; round += 1) {
    const faults = await playRound(round);
    if (faults.length > 0) return [`In round ${round}:`, ...faults];
  }
  // What later crashes and recoveries might have done to earlier rounds.
  const faults = seen.flatMap((evidence) => findFaults(world.db, evidence)[0]);
  return faults.length > 0 ? ['After all rounds:', ...faults] : [];
}

process.stdout.write(`seed ${seed}, ${rounds} rounds\n`);
try {
  const begun = performance.now();
  const faults = await play();
  const seconds = Math.round((performance.now() - begun) / 1000);
  progress.end();
  process.stdout.write(`${seen.length} crashes in ${seconds} s: ${totals}.\n`);
  process.stdout.write(faults.length === 0 ? 'Every invariant held.\n' : `${faults.slice(0, 20).join('\n  ')}\n`);
  if (faults.length > 0) process.exitCode = 1;
} finally {
  await serving.kill();
  await upstream.close();
  world.close();
}
