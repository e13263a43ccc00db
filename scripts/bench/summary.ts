import type { Round, StreamFigures, TargetFigures } from './load.ts';
import type { ExchangeFigures } from './measure-exchanges.ts';
import { median } from './statistics.ts';
import type { Target, TargetName } from './target.ts';

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
  /** Absent where whole bodies only are answered. */
  readonly streams?: Readonly<Record<keyof StreamFigures, StreamSummary>>;
}

/** Streams of one kind. */
export interface StreamSummary {
  readonly perSecond: Spread;
  readonly perSecondOfBare: Spread;
  readonly p50Ms: Spread;
  readonly p50OfBare: Spread;
  readonly cpuUs: Spread;
  readonly cpuOfBare: Spread;
}

const throughput = ({ throughput: { perSecond } }: TargetFigures): number => perSecond;
const cpu = ({ throughput: { cpuUs } }: TargetFigures): number => cpuUs;
const p50 = ({ latency: { p50Ms } }: TargetFigures): number => p50Ms;

/** The same figures of a target and of the bare proxy, as one round found them. */
interface Pair<T> {
  readonly own: T;
  readonly bare: T;
}

function spread<T>(pairs: readonly Pair<T>[], each: (own: T, bare: T) => number): Spread {
  const values = pairs.map(({ own, bare }) => each(own, bare));
  return { median: median(values), lowest: Math.min(...values), highest: Math.max(...values) };
}

function pairsOf<T>(
  rounds: readonly Round[],
  name: TargetName,
  part: (figures: TargetFigures) => T | undefined,
  other: TargetName = 'bare proxy',
) {
  return rounds.flatMap((round): Pair<T>[] => {
    const [figures, ofBare] = [round[name], round[other]];
    const own = figures && part(figures);
    const bare = ofBare && part(ofBare);
    return own === undefined || bare === undefined ? [] : [{ own, bare }];
  });
}

function summarizeStreams(rounds: readonly Round[], name: TargetName, kind: keyof StreamFigures): StreamSummary {
  const pairs = pairsOf(rounds, name, ({ streams }) => streams?.[kind]);
  const figure = (key: keyof ExchangeFigures): Spread => spread(pairs, (own) => own[key]);
  const ratio = (key: keyof ExchangeFigures): Spread => spread(pairs, (own, bare) => own[key] / bare[key]);
  return {
    perSecond: figure('perSecond'),
    perSecondOfBare: ratio('perSecond'),
    p50Ms: figure('p50Ms'),
    p50OfBare: ratio('p50Ms'),
    cpuUs: figure('cpuUs'),
    cpuOfBare: ratio('cpuUs'),
  };
}

function summarize({ name, streams }: Target, rounds: readonly Round[]): TargetSummary {
  const pairs = pairsOf(rounds, name, (figures) => figures);
  const ofKind = (kind: keyof StreamFigures): StreamSummary => summarizeStreams(rounds, name, kind);
  return {
    name,
    requestsPerSecond: spread(pairs, throughput),
    ofBare: spread(pairs, (own, bare) => throughput(own) / throughput(bare)),
    cpuUs: spread(pairs, cpu),
    cpuOfBare: spread(pairs, (own, bare) => cpu(own) / cpu(bare)),
    p50Ms: spread(pairs, p50),
    p99Ms: spread(pairs, (own) => own.latency.p99Ms),
    addedMs: spread(pairs, (own, bare) => p50(own) - p50(bare)),
    ...(streams
      ? { streams: { burst: ofKind('burst'), pacedAlone: ofKind('pacedAlone'), paced: ofKind('paced') } }
      : {}),
  };
}

/** What the gateway takes, of what the gateway of another checkout takes. */
export interface Comparison {
  readonly name: TargetName;
  readonly cpu: Spread;
  readonly latency: Spread;
  readonly streamCpu: Spread;
  readonly pacedStreamCpu: Spread;
}

/** Ratios within a round, of the gateway and of a capped key. */
export function compareWithBefore(rounds: readonly Round[]): Comparison[] {
  const compare = (name: TargetName, before: TargetName): Comparison => {
    const ratio = (figure: (figures: TargetFigures) => number | undefined): Spread =>
      spread(pairsOf(rounds, name, figure, before), (own, other) => own / other);
    return {
      name,
      cpu: ratio(cpu),
      latency: ratio(p50),
      streamCpu: ratio(({ streams }) => streams?.burst.cpuUs),
      pacedStreamCpu: ratio(({ streams }) => streams?.paced.cpuUs),
    };
  };
  return [compare('gateway', 'gateway before'), compare('a capped key', 'a capped key before')];
}

export const summarizeLoad = (targets: readonly Target[], rounds: readonly Round[]): TargetSummary[] =>
  targets.map((target) => summarize(target, rounds));
