import type { AnalysisFigures } from './analysis.ts';
import type { DecisionFigures } from './decision.ts';
import type { Round } from './load.ts';
import type { Machine } from './machine.ts';
import { STREAMS, type StreamMemory } from './many-streams.ts';
import { STREAM_CONNECTIONS } from './measure-exchanges.ts';
import { CONNECTIONS, type LoadTool } from './measure-throughput.ts';
import { compareWithBefore, type Spread, type TargetSummary } from './summary.ts';
import { MINUTES, type SustainedMemory } from './sustained-load.ts';
import { cell, table } from './table.ts';
import type { UsageFigures } from './usage.ts';
import { PACED, STREAM_CHUNKS } from './workload.ts';

export const machineLine = ({ cpu, cores, memoryGb, platform, node }: Machine): string =>
  `${cpu}, ${cores} cores, ${memoryGb} GB, ${platform}, Node ${node}`;

/** A figure of the gateway next to its aim, which is to be read and never asserted. */
interface Aim {
  readonly what: string;
  readonly spread: Spread;
  readonly decimals: number;
  readonly bound: '>=' | '<=';
  readonly aim: number;
}

const PACED_AIM = 1.05;

function streamAims({ streams }: TargetSummary): Aim[] {
  if (streams === undefined) return [];
  const aim = (connections: string, spread: Spread): Aim => ({
    what: `stream of ${STREAM_CHUNKS} chunks (${PACED}, ${connections}), of the bare proxy's time`,
    spread,
    decimals: 3,
    bound: '<=',
    aim: PACED_AIM,
  });
  return [aim('alone', streams.pacedAlone.p50OfBare), aim(`${STREAM_CONNECTIONS} at a time`, streams.paced.p50OfBare)];
}

const gatewayAims = (gateway: TargetSummary): Aim[] => [
  { what: 'throughput, of the bare proxy', spread: gateway.ofBare, decimals: 2, bound: '>=', aim: 0.4 },
  { what: 'CPU per request, of the bare proxy', spread: gateway.cpuOfBare, decimals: 2, bound: '<=', aim: 2.5 },
  { what: 'added latency at p50, ms', spread: gateway.addedMs, decimals: 3, bound: '<=', aim: 0.25 },
  ...streamAims(gateway),
];

const verdict = (value: number, bound: Aim['bound'], aim: number): string =>
  (bound === '>=' ? value >= aim : value <= aim) ? 'met' : 'missed';

function aimRow({ what, spread, decimals, bound, aim }: Aim): string[] {
  const range = `${cell(spread.lowest, decimals)} to ${cell(spread.highest, decimals)}`;
  return [what, cell(spread.median, decimals), range, `${bound} ${aim}`, verdict(spread.median, bound, aim)];
}

export const aimTable = (gateway: TargetSummary): string =>
  table([[gateway.name, 'median', 'range', 'aim', ''], ...gatewayAims(gateway).map(aimRow)]);

const range = ({ median, lowest, highest }: Spread): string =>
  `${cell(median, 3)} (${cell(lowest, 3)} to ${cell(highest, 3)})`;

/** What the gateway takes, of what the gateway of another checkout takes. */
export function comparisonTable(rounds: readonly Round[]): string {
  const head = ['of the gateway before', 'CPU a request', 'p50', 'CPU a stream at once', `CPU a stream ${PACED}`];
  const rows = compareWithBefore(rounds).map(({ name, cpu, latency, streamCpu, pacedStreamCpu }) => [
    name,
    ...[cpu, latency, streamCpu, pacedStreamCpu].map(range),
  ]);
  return table([head, ...rows]);
}

const BUSY_AIM_US = 15;
const RANDOM_AIM_US = 30;

/** The decision alone, by the number of keys in the store. */
export function decisionTable(figures: readonly DecisionFigures[]): string {
  const head = ['the decision alone', 'busy p50 us', 'p99 us', 'aim', '', 'random p50 us', 'p99 us', 'aim', ''];
  const row = ({ keys, busy, random }: DecisionFigures): string[] => [
    `${keys.toLocaleString('en-US')} keys`,
    cell(busy.p50Us, 1),
    cell(busy.p99Us, 1),
    `<= ${BUSY_AIM_US}`,
    verdict(busy.p50Us, '<=', BUSY_AIM_US),
    cell(random.p50Us, 1),
    cell(random.p99Us, 1),
    `<= ${RANDOM_AIM_US}`,
    verdict(random.p50Us, '<=', RANDOM_AIM_US),
  ];
  return table([head, ...figures.map(row)]);
}

const ANALYSIS_AIM_S = 10;

/** Analyses of a thousand keys, and calls of the gateway next to them. */
export function analysisTable({ keys, models, mappings, idle, analyses }: AnalysisFigures): string {
  const head = ['analysis', 'seconds', 'aim', '', 'calls meanwhile', 'p50 ms', 'p99 ms'];
  const rows = analyses.map(({ name, hasAim, seconds, calls }): string[] => [
    name,
    cell(seconds, 2),
    ...(hasAim ? [`< ${ANALYSIS_AIM_S}`, verdict(seconds, '<=', ANALYSIS_AIM_S)] : ['', '']),
    String(calls.count),
    cell(calls.p50Ms, 2),
    cell(calls.p99Ms, 2),
  ]);
  const none = ['none, for comparison', '', '', '', String(idle.count), cell(idle.p50Ms, 2), cell(idle.p99Ms, 2)];
  return `${keys} keys, ${models} models, ${mappings} mappings\n${table([head, ...rows, none])}`;
}

const USAGE_AIM = 2;

/** Usage reports, and calls of the gateway next to them. */
export function usageTable({ stored, quiet, reports }: UsageFigures): string {
  const head = ['report', 'seconds', 'calls meanwhile', 'p50 ms', 'p99 ms', 'of quiet', 'aim', ''];
  const rows = reports.map(({ query, seconds, calls }): string[] => {
    const ratio = calls.p99Ms / quiet.p99Ms;
    return [
      query,
      cell(seconds, 2),
      String(calls.count),
      cell(calls.p50Ms, 2),
      cell(calls.p99Ms, 2),
      cell(ratio, 2),
      `<= ${USAGE_AIM}`,
      verdict(ratio, '<=', USAGE_AIM),
    ];
  });
  const none = ['none, for comparison', '', String(quiet.count), cell(quiet.p50Ms, 2), cell(quiet.p99Ms, 2)];
  return `usage reports over ${stored.toLocaleString('en-US')} calls\n${table([head, ...rows, none])}`;
}

export function requestTable(summaries: readonly TargetSummary[]): string {
  const head = ['whole answers', 'req/s', 'of bare', 'CPU us/req', 'of bare', 'p50 ms', 'p99 ms', 'added ms'];
  const row = (summary: TargetSummary): string[] => [
    summary.name,
    cell(summary.requestsPerSecond.median),
    cell(summary.ofBare.median, 2),
    cell(summary.cpuUs.median, 1),
    cell(summary.cpuOfBare.median, 2),
    cell(summary.p50Ms.median, 3),
    cell(summary.p99Ms.median, 3),
    cell(summary.addedMs.median, 3),
  ];
  return table([head, ...summaries.map(row)]);
}

/** Streams as fast as they come, and at a model's pace. */
export function streamTable(summaries: readonly TargetSummary[]): string {
  const burstHead = [
    `streams of ${STREAM_CHUNKS} chunks at once`,
    'streams/s',
    'of bare',
    'p50 ms',
    'of bare',
    'CPU us/stream',
    'of bare',
  ];
  const pacedHead = [
    `the same, a chunk ${PACED}`,
    'p50 ms, alone',
    'of bare',
    `p50 ms, ${STREAM_CONNECTIONS} conn.`,
    'of bare',
    'CPU us/stream',
    'of bare',
  ];
  const bursts: string[][] = [];
  const paced: string[][] = [];
  for (const { name, streams } of summaries) {
    if (streams === undefined) continue;
    const { burst, pacedAlone: alone, paced: together } = streams;
    bursts.push([
      name,
      ...withRatio(burst.perSecond, burst.perSecondOfBare),
      ...withRatio(burst.p50Ms, burst.p50OfBare, 2),
      ...withRatio(burst.cpuUs, burst.cpuOfBare),
    ]);
    paced.push([
      name,
      ...withRatio(alone.p50Ms, alone.p50OfBare, 1, 3),
      ...withRatio(together.p50Ms, together.p50OfBare, 1, 3),
      ...withRatio(together.cpuUs, together.cpuOfBare),
    ]);
  }
  return `${table([burstHead, ...bursts])}\n\n${table([pacedHead, ...paced])}`;
}

const withRatio = (figure: Spread, ratio: Spread, decimals = 0, ratioDecimals = 2): string[] => [
  cell(figure.median, decimals),
  cell(ratio.median, ratioDecimals),
];

const MEMORY_AIM_MB = 250;

/** What the gateway's process takes while many streams run through it. */
export function streamMemoryTable(figures: readonly StreamMemory[]): string {
  const head = [`resident MB at ${STREAMS} streams`, 'before', 'peak', 'after', 'aim', '', 'CPU, of a core'];
  const row = ({ name, beforeMb, peakMb, afterMb, cpuShare }: StreamMemory): string[] => [
    name,
    cell(beforeMb),
    cell(peakMb),
    cell(afterMb),
    `<= ${MEMORY_AIM_MB}`,
    verdict(peakMb, '<=', MEMORY_AIM_MB),
    cell(cpuShare, 2),
  ];
  return table([head, ...figures.map(row)]);
}

const SUSTAINED_AIM_MB = 200;
const FRESH_AIM_MB = 160;

/** What the gateway's process takes fresh, and after ten minutes of load. */
export function sustainedMemoryTable({ freshMb, afterMb, peakMb, perSecond }: SustainedMemory): string {
  const row = (name: string, mb: number, aim: number): string[] => [
    name,
    cell(mb),
    `<= ${aim}`,
    verdict(mb, '<=', aim),
  ];
  return table([
    ['resident MB', '', 'aim', ''],
    row('fresh', freshMb, FRESH_AIM_MB),
    row(`after ${MINUTES} minutes at ${CONNECTIONS} connections`, afterMb, SUSTAINED_AIM_MB),
    ['at most', cell(peakMb), '', `${Math.round(perSecond)} req/s`],
  ]);
}

/** How the figures came about, in a line. */
export const methodLine = (tool: LoadTool, rounds: number, seconds: number): string =>
  `medians of ${rounds} rounds of ${seconds} s each; req/s and CPU at ${CONNECTIONS} connections (${tool}), p50 and p99 at one, ` +
  `streams at ${STREAM_CONNECTIONS} where nothing else is said; ratios and differences within a round`;
