import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import type { Progress } from '../progress.ts';
import { startUpstream } from '../servers.ts';
import { median } from '../statistics.ts';
import type { Target } from '../target.ts';
import { type CounterName, findCounter, type InstructionCounter } from './counters.ts';
import { add, type CostBySteps, eachFigure, type Figure, scaled, sum, total } from './figures.ts';
import type { PassName, PassResult } from './probe-answers.ts';
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
  readonly profile: Amount;
  readonly profiler: 'cpu' | 'emulated cpu';
}

const NATIVE: Plan = {
  warmUp: { whole: 3000, streams: 60 },
  rounds: 7,
  round: { whole: 200, streams: 8 },
  profile: { whole: 2000, streams: 40 },
  profiler: 'cpu',
};

/** An emulator is slow: as little as gives the same figures within some percent. */
const EMULATED: Plan = {
  warmUp: { whole: 1000, streams: 20 },
  rounds: 3,
  round: { whole: 100, streams: 4 },
  profile: { whole: 200, streams: 4 },
  profiler: 'emulated cpu',
};

const COUNTED: Amount = { whole: 200, streams: 4 };
const TRACED: Amount = { whole: 50, streams: 2 };

/** A gateway, and ways to call it. */
interface Bench {
  readonly gateway: ProbedGateway;
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
const counted = (bench: Bench, pass: PassName): Promise<ByExchange<CostBySteps>> =>
  inTurn(async (name) => {
    const { count, run } = work(bench, pass, name, COUNTED);
    const { cost } = await bench.gateway.counted(pass, run);
    return scaled(cost, 1 / count);
  });

const profiled = (bench: Bench): Promise<ByExchange<PassResult>> =>
  inTurn((name) => bench.gateway.counted(bench.plan.profiler, work(bench, 'profile', name, bench.plan.profile).run));

const samplesIn = ({ cost }: PassResult): number => total(cost, 'cpuUs') ?? 1;

/** Shares out what an exchange takes by where the samples of its profile fell. */
const sharedOut = (figure: Figure, amounts: ByExchange<number>, profiles: ByExchange<PassResult>) =>
  forEach((name) => {
    const cost: CostBySteps = {};
    const scale = amounts[name] / samplesIn(profiles[name]);
    eachFigure(profiles[name].cost, (step, _, samples) => add(cost, step, figure, samples * scale));
    return cost;
  });

async function startBench(folder: string, upstream: Target, progress: Progress, under: readonly string[] = []) {
  progress.say('cost: starting the gateway');
  mkdirSync(folder);
  const gateway = await startProbedGateway(folder, upstream, under);
  const plan = under.length === 0 ? NATIVE : EMULATED;
  const bench: Bench = { gateway, upstream, plan, runs: await runsOf(gateway, upstream), progress };
  await inTurn((name) => work(bench, 'warming up', name, plan.warmUp).run());
  return bench;
}

/** What the budget bounds, however busy the machine is. */
async function boundedCosts(bench: Bench, folder: string): Promise<ByExchange<CostBySteps>[]> {
  const { gateway, upstream } = bench;
  const parts: ByExchange<CostBySteps>[] = [];
  for (const pass of ['allocations', 'async', 'store'] as const) parts.push(await counted(bench, pass));
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
async function cpuCosts(bench: Bench) {
  const { gateway } = bench;
  const cpuUs = await medians(bench, async (run) => {
    const before = await gateway.used();
    await run();
    return (await gateway.used()).cpuUs - before.cpuUs;
  });
  const profiles = await profiled(bench);
  const plain = profiles['plain call'];
  const scale = cpuUs['plain call'] / samplesIn(plain);
  const functions = (plain.functions ?? []).map(([name, samples]) => [name, samples * scale] as const);
  return { costs: sharedOut('cpuUs', cpuUs, profiles), functions };
}

async function instructionCosts(bench: Bench, counter: InstructionCounter): Promise<ByExchange<CostBySteps>> {
  const thousands = await medians(bench, async (run) => (await counter.count(bench.gateway.target.pid, run)) / 1000);
  return sharedOut('instructions', thousands, await profiled(bench));
}

async function ended({ child }: ProbedGateway): Promise<void> {
  const exit = once(child, 'exit');
  child.kill('SIGTERM');
  await exit;
}

/** A chunk costs what a longer stream costs more. */
const byScenario = (costs: ByExchange<CostBySteps>): Record<Scenario, CostBySteps> => ({
  'plain call': costs['plain call'],
  'capped key': costs['capped key'],
  'cache hit': costs['cache hit'],
  denial: costs.denial,
  'stream chunk': scaled(
    sum(costs['long stream'], scaled(costs['short stream'], -1)),
    1 / (LONG_CHUNKS - SHORT_CHUNKS),
  ),
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
  const bench = await startBench(path.join(own, 'native'), upstream, progress);
  // First of all: what V8 has optimized after so many calls shows in the bytes.
  const parts = await boundedCosts(bench, own);
  const cpu = onlyBounded ? undefined : await cpuCosts(bench);
  if (cpu !== undefined) parts.push(cpu.costs);
  if (counter !== undefined) {
    const { under } = counter;
    if (under.length > 0) await ended(bench.gateway);
    const other = under.length > 0 ? await startBench(path.join(own, 'counted'), upstream, progress, under) : bench;
    parts.push(await instructionCosts(other, counter));
  }
  return {
    node: process.versions.node,
    counter: counter === undefined ? null : counter.name,
    calls: byScenario(forEach((name) => sum(...parts.map((part) => part[name])))),
    functions: cpu?.functions ?? [],
  };
}
