import {
  type ExchangeFigures,
  type MeasureExchanges,
  measureBursts,
  measureLatency,
  measurePaced,
  measurePacedAlone,
} from './measure-exchanges.ts';
import { type LoadTool, measureThroughput, type ThroughputFigures } from './measure-throughput.ts';
import type { Progress } from './progress.ts';
import type { Target, TargetName } from './target.ts';
import { verify } from './verify.ts';

/** What one round found out about one target. */
export interface TargetFigures {
  readonly latency: ExchangeFigures;
  readonly throughput: ThroughputFigures;
  /** Absent where whole bodies only are answered. */
  readonly streams?: StreamFigures;
}

export interface StreamFigures {
  /** Chunks as fast as they come. */
  readonly burst: ExchangeFigures;
  /** Chunks at a model's pace: a stream at a time, and several. */
  readonly pacedAlone: ExchangeFigures;
  readonly paced: ExchangeFigures;
}

export type Round = Readonly<Partial<Record<TargetName, TargetFigures>>>;

export interface LoadPlan {
  readonly targets: readonly Target[];
  readonly apiKey: string;
  readonly tool: LoadTool;
  readonly rounds: number;
  readonly seconds: number;
  readonly progress: Progress;
}

/** What it takes until the compiler is done with a server's code, measured; slow targets get no longer than the laps. */
const WARM_UP_REQUESTS = 60_000;
const WARM_UP_LAPS = 8;
const WARM_UP_SECONDS = 2;

const keyFor = (plan: LoadPlan, target: Target): string => target.apiKey ?? plan.apiKey;

async function warmUp(plan: LoadPlan): Promise<void> {
  const { targets, tool, progress } = plan;
  for (const target of targets) {
    const apiKey = keyFor(plan, target);
    progress.say(`warm-up: ${target.name}`);
    await verify(target, apiKey);
    let requests = 0;
    for (let lap = 0; lap < WARM_UP_LAPS && requests < WARM_UP_REQUESTS; lap += 1) {
      const { perSecond } = await measureThroughput(tool, target, apiKey, WARM_UP_SECONDS);
      requests += perSecond * WARM_UP_SECONDS;
    }
    if (target.streams) await measureBursts(target, apiKey, WARM_UP_SECONDS);
  }
}

/** Measures one thing at each target in turn, so that what is compared is measured next to each other. */
async function inTurn<T>(
  plan: LoadPlan,
  label: string,
  targets: readonly Target[],
  measure: (target: Target, apiKey: string, seconds: number) => Promise<T>,
): Promise<Map<TargetName, T>> {
  const figures = new Map<TargetName, T>();
  for (const target of targets) {
    plan.progress.say(`${label}: ${target.name}`);
    figures.set(target.name, await measure(target, keyFor(plan, target), plan.seconds));
  }
  return figures;
}

async function measureStreams(
  plan: LoadPlan,
  label: string,
  targets: readonly Target[],
): Promise<Map<TargetName, StreamFigures>> {
  const inTurnOf = (what: string, measure: MeasureExchanges) => inTurn(plan, `${label} ${what}`, targets, measure);
  const bursts = await inTurnOf('at once', measureBursts);
  const alone = await inTurnOf('paced, alone', measurePacedAlone);
  const together = await inTurnOf('paced', measurePaced);
  const figures = new Map<TargetName, StreamFigures>();
  for (const { name } of targets) {
    const [burst, pacedAlone, paced] = [bursts.get(name), alone.get(name), together.get(name)];
    if (burst !== undefined && pacedAlone !== undefined && paced !== undefined) {
      figures.set(name, { burst, pacedAlone, paced });
    }
  }
  return figures;
}

async function measureRound(plan: LoadPlan, number: number): Promise<Round> {
  const label = (what: string): string => `round ${number} of ${plan.rounds}, ${what}`;
  // Each round begins with another target, so that none is always measured on a cooler machine.
  const first = (number - 1) % plan.targets.length;
  const targets = [...plan.targets.slice(first), ...plan.targets.slice(0, first)];
  const latencies = await inTurn(plan, label('latency'), targets, measureLatency);
  const throughputs = await inTurn(plan, label('throughput'), targets, (target, apiKey, seconds) =>
    measureThroughput(plan.tool, target, apiKey, seconds),
  );
  const streamed = await measureStreams(
    plan,
    label('streams'),
    targets.filter(({ streams }) => streams),
  );
  const round: Partial<Record<TargetName, TargetFigures>> = {};
  for (const { name } of plan.targets) {
    const [latency, throughput, streams] = [latencies.get(name), throughputs.get(name), streamed.get(name)];
    if (latency === undefined || throughput === undefined) continue;
    round[name] = { latency, throughput, ...(streams === undefined ? {} : { streams }) };
  }
  return round;
}

/** Warms every target up, then measures all of them in each round. Stops at the first failed request. */
export async function measureLoad(plan: LoadPlan): Promise<Round[]> {
  await warmUp(plan);
  const rounds: Round[] = [];
  for (let number = 1; number <= plan.rounds; number += 1) rounds.push(await measureRound(plan, number));
  return rounds;
}
