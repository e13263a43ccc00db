import type { Round, TargetFigures } from './load.ts';
import { median } from './statistics.ts';
import type { TargetName } from './target.ts';

/** A median over the rounds, with the smallest and the largest of them. */
export interface Spread {
  readonly median: number;
  readonly lowest: number;
  readonly highest: number;
}

/** Medians over the rounds; ratios and differences are taken within a round first. */
export interface TargetSummary {
  readonly name: TargetName;
  readonly requestsPerSecond: Spread;
  readonly ofBare: Spread;
  readonly cpuUs: Spread;
  readonly cpuOfBare: Spread;
  readonly p50Ms: Spread;
  readonly p99Ms: Spread;
  /** p50 minus the bare proxy's. */
  readonly addedMs: Spread;
  readonly streamsPerSecond: Spread;
  readonly streamsOfBare: Spread;
  readonly streamP50Ms: Spread;
  readonly streamCpuUs: Spread;
}

type Figure = (figures: TargetFigures) => number;

const throughput: Figure = (figures) => figures.throughput.perSecond;
const cpu: Figure = (figures) => figures.throughput.cpuUs;
const p50: Figure = (figures) => figures.latency.p50Ms;
const streams: Figure = (figures) => figures.streams?.perSecond ?? Number.NaN;

function summarize(name: TargetName, rounds: readonly Round[]): TargetSummary {
  const spread = (each: (own: TargetFigures, bare: TargetFigures) => number): Spread => {
    const values = rounds.flatMap((round) => {
      const [own, bare] = [round[name], round['bare proxy']];
      return own === undefined || bare === undefined ? [] : [each(own, bare)];
    });
    return { median: median(values), lowest: Math.min(...values), highest: Math.max(...values) };
  };
  const ratio = (figure: Figure): Spread => spread((own, bare) => figure(own) / figure(bare));
  return {
    name,
    requestsPerSecond: spread(throughput),
    ofBare: ratio(throughput),
    cpuUs: spread(cpu),
    cpuOfBare: ratio(cpu),
    p50Ms: spread(p50),
    p99Ms: spread((own) => own.latency.p99Ms),
    addedMs: spread((own, bare) => p50(own) - p50(bare)),
    streamsPerSecond: spread(streams),
    streamsOfBare: ratio(streams),
    streamP50Ms: spread((own) => own.streams?.p50Ms ?? Number.NaN),
    streamCpuUs: spread((own) => own.streams?.cpuUs ?? Number.NaN),
  };
}

export const summarizeLoad = (names: readonly TargetName[], rounds: readonly Round[]): TargetSummary[] =>
  names.map((name) => summarize(name, rounds));
