import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import type { Gateway } from '../gateway.ts';
import type { Progress } from '../progress.ts';
import { startUpstream } from '../servers.ts';
import { median } from '../statistics.ts';
import type { Target } from '../target.ts';
import { type CounterName, findCounter, type InstructionCounter } from './counters.ts';
import { startEmulatedGateway } from './emulated-gateway.ts';
import { type CostBySteps, lesser, scaled, sum, total } from './figures.ts';
import type { PassResult } from './pass.ts';
import type { PassName } from './probe-answers.ts';
import { type ProbedGateway, startProbedGateway } from './probed-gateway.ts';
import {
  type ByExchange,
  type ExchangeName,
  forEach,
  inTurn,
  LONG_CHUNKS,
  type RunExchanges,
  runsOf,
  type Scenario,
  SHORT_CHUNKS,
} from './scenarios.ts';
import { canTrace, countSystemCalls } from './system-calls.ts';

export interface CostFigures {
  readonly node: string;
  /** How instructions were counted; null: not at all. */
  readonly counter: CounterName | null;
  /** In user mode, of the main thread, in thousands; null where they were not counted. */
  readonly instructions: Readonly<Record<Scenario, number>> | null;
  readonly calls: Readonly<Record<Scenario, CostBySteps>>;
  /** Functions in which a plain call spends its CPU time, most first, in microseconds; empty where none were looked for. */
  readonly functions: readonly (readonly [name: string, us: number])[];
}

export interface CostOptions {
  readonly folder: string;
  readonly counter: CounterName | undefined;
  /** Only what the budget bounds, which takes half the time. */
  readonly onlyBounded: boolean;
  readonly progress: Progress;
}

/** How many exchanges: whole ones, and streams, of which a long one lasts as long as fifty. */
interface Amount {
  readonly whole: number;
  readonly streams: number;
}

/** How much is done on a gateway. */
interface Plan {
  readonly warmUp: Amount;
  readonly rounds: number;
  readonly round: Amount;
}

const NATIVE: Plan = {
  warmUp: { whole: 3000, streams: 60 },
  rounds: 7,
  round: { whole: 200, streams: 8 },
};

/** An emulator is slow: as little as gives the same figures within some percent. */
const EMULATED: Plan = {
  warmUp: { whole: 1500, streams: 30 },
  rounds: 5,
  round: { whole: 100, streams: 4 },
};

const PROFILED: Amount = { whole: 2000, streams: 40 };
const COUNTED: Amount = { whole: 200, streams: 4 };
/** V8 may run a function for a while as it was before it was optimized, which takes more. */
const ALLOCATION_ROUNDS = 3;
const TRACED: Amount = { whole: 50, streams: 2 };

/** A gateway, and ways to call it. */
interface Bench<Served extends Gateway = Gateway> {
  readonly gateway: Served;
  readonly upstream: Target;
  readonly plan: Plan;
  readonly runs: ByExchange<RunExchanges>;
  readonly progress: Progress;
}

/** Runs so many exchanges of a kind and hands on their number. */
interface Work {
  readonly count: number;
  run(): Promise<void>;
}

function work({ runs, progress }: Bench, what: string, name: ExchangeName, { whole, streams }: Amount): Work {
  const count = name.endsWith('stream') ? streams : whole;
  return {
    count,
    run() {
      progress.say(`cost: ${what}, ${name}`);
      return runs[name](count);
    },
  };
}

/** The medians of rounds in which the exchanges take turns, so that what else the machine does falls on all of them. */
async function medians(
  bench: Bench,
  measure: (run: () => Promise<void>) => Promise<number>,
): Promise<ByExchange<number>> {
  const { rounds, round } = bench.plan;
  const figures: ByExchange<number>[] = [];
  for (let number = 1; number <= rounds; number += 1) {
    const one = await inTurn(async (name) => {
      const { count, run } = work(bench, `round ${number} of ${rounds}`, name, round);
      return (await measure(run)) / count;
    });
    figures.push(one);
  }
  return forEach((name) => median(figures.map((each) => each[name])));
}

/** Figures of one exchange, as a pass of the probe counts them. */
const counted = (bench: Bench<ProbedGateway>, pass: PassName): Promise<ByExchange<CostBySteps>> =>
  inTurn(async (name) => {
    const { count, run } = work(bench, pass, name, COUNTED);
    const { cost } = await bench.gateway.counted(pass, run);
    return scaled(cost, 1 / count);
  });

const samplesIn = ({ cost }: PassResult): number => total(cost, 'cpuUs') ?? 1;

/** Shares out the CPU time of an exchange by where the samples of its profile fell. */
function sharedOut(cpuUs: number, profile: PassResult): CostBySteps {
  return scaled(profile.cost, cpuUs / samplesIn(profile));
}

async function startBench<Served extends Gateway>(
  upstream: Target,
  plan: Plan,
  progress: Progress,
  start: () => Promise<Served>,
): Promise<Bench<Served>> {
  progress.say('cost: starting the gateway');
  const gateway = await start();
  const bench = { gateway, upstream, plan, runs: await runsOf(gateway, upstream), progress };
  await inTurn((name) => work(bench, 'warming up', name, plan.warmUp).run());
  return bench;
}

/** What the budget bounds, however busy the machine is. */
async function boundedCosts(bench: Bench<ProbedGateway>, folder: string): Promise<ByExchange<CostBySteps>[]> {
  const { gateway, upstream } = bench;
  let bytes = await counted(bench, 'allocations');
  for (let round = 2; round <= ALLOCATION_ROUNDS; round += 1) {
    const again = await counted(bench, 'allocations');
    bytes = forEach((name) => lesser(bytes[name], again[name]));
  }
  const parts = [bytes, await counted(bench, 'async'), await counted(bench, 'store')];
  if (!canTrace()) return parts;
  const ports = { gateway: gateway.target.port, upstream: upstream.port };
  const traced = await inTurn(async (name) => {
    const { count, run } = work(bench, 'system calls', name, TRACED);
    const cost = await countSystemCalls(gateway.target.pid, ports, path.join(folder, 'strace'), run);
    return scaled(cost, 1 / count);
  });
  return [...parts, traced];
}

/** CPU time by step, and the functions of a plain call. */
async function cpuCosts(bench: Bench<ProbedGateway>) {
  const { gateway } = bench;
  const cpuUs = await medians(bench, async (run) => {
    const before = await gateway.used();
    await run();
    return (await gateway.used()).cpuUs - before.cpuUs;
  });
  const profiles = await inTurn((name) => gateway.counted('cpu', work(bench, 'profile', name, PROFILED).run));
  const plain = profiles['plain call'];
  const scale = cpuUs['plain call'] / samplesIn(plain);
  const functions = (plain.functions ?? []).map(([name, samples]) => [name, samples * scale] as const);
  return { costs: forEach((name) => sharedOut(cpuUs[name], profiles[name])), functions };
}

const thousandsOfInstructions = (bench: Bench, counter: InstructionCounter): Promise<ByExchange<number>> =>
  medians(bench, async (run) => (await counter.count(bench.gateway.target.pid, run)) / 1000);

async function ended({ child }: ProbedGateway): Promise<void> {
  const exit = once(child, 'exit');
  child.kill('SIGTERM');
  await exit;
}

const CHUNKS_APART = LONG_CHUNKS - SHORT_CHUNKS;

/** @param chunk what a chunk takes, from what a long stream and a short one take */
const byScenario = <T>(exchanges: ByExchange<T>, chunk: (long: T, short: T) => T): Record<Scenario, T> => ({
  'plain call': exchanges['plain call'],
  'capped key': exchanges['capped key'],
  'cache hit': exchanges['cache hit'],
  denial: exchanges.denial,
  'stream chunk': chunk(exchanges['long stream'], exchanges['short stream']),
});

/** Measures by step what one exchange of each scenario costs, over one connection, one after the other. */
export async function measureCost({
  folder,
  counter: wanted,
  onlyBounded,
  progress,
}: CostOptions): Promise<CostFigures> {
  const own = path.join(folder, 'cost');
  mkdirSync(own);
  const counter = findCounter(wanted, own);
  const upstream = await startUpstream();
  const folders = { native: path.join(own, 'native'), emulated: path.join(own, 'emulated') };
  for (const each of Object.values(folders)) mkdirSync(each);
  const bench = await startBench(upstream, NATIVE, progress, () => startProbedGateway(folders.native, upstream));
  // First of all: what V8 has optimized after so many calls shows in the bytes.
  const parts = await boundedCosts(bench, own);
  const cpu = onlyBounded ? undefined : await cpuCosts(bench);
  if (cpu !== undefined) parts.push(cpu.costs);
  let instructions: ByExchange<number> | undefined;
  if (counter?.name === 'perf') instructions = await thousandsOfInstructions(bench, counter);
  if (counter?.name === 'qemu') {
    await ended(bench.gateway);
    const start = () => startEmulatedGateway(folders.emulated, upstream, counter.under);
    instructions = await thousandsOfInstructions(await startBench(upstream, EMULATED, progress, start), counter);
  }
  const calls = forEach((name) => sum(...parts.map((part) => part[name])));
  return {
    node: process.versions.node,
    counter: counter?.name ?? null,
    instructions: instructions ? byScenario(instructions, (long, short) => (long - short) / CHUNKS_APART) : null,
    calls: byScenario(calls, (long, short) => scaled(sum(long, scaled(short, -1)), 1 / CHUNKS_APART)),
    functions: cpu?.functions ?? [],
  };
}
