import type { Machine } from './machine.ts';
import type { LoadTool } from './measure-throughput.ts';
import type { Spread, TargetSummary } from './summary.ts';
import { cell, table } from './table.ts';

export const machineLine = ({ cpu, cores, memoryGb, platform, node }: Machine): string =>
  `${cpu}, ${cores} cores, ${memoryGb} GB, ${platform}, Node ${node}`;

export interface Aim {
  readonly what: string;
  readonly spread: Spread;
  readonly decimals: number;
  readonly bound: '>=' | '<=';
  readonly aim: number;
}

/** The aims of the gateway; to be read beside the figures, never asserted. */
export const gatewayAims = (gateway: TargetSummary): Aim[] => [
  { what: 'throughput, of the bare proxy', spread: gateway.ofBare, decimals: 2, bound: '>=', aim: 0.4 },
  { what: 'CPU per request, of the bare proxy', spread: gateway.cpuOfBare, decimals: 2, bound: '<=', aim: 2.5 },
  { what: 'added latency at p50, ms', spread: gateway.addedMs, decimals: 3, bound: '<=', aim: 0.25 },
];

function aimRow({ what, spread, decimals, bound, aim }: Aim): string[] {
  const isMet = bound === '>=' ? spread.median >= aim : spread.median <= aim;
  const range = `${cell(spread.lowest, decimals)} to ${cell(spread.highest, decimals)}`;
  return [what, cell(spread.median, decimals), range, `${bound} ${aim}`, isMet ? 'met' : 'missed'];
}

export const aimTable = (aims: readonly Aim[]): string =>
  table([['gateway', 'median', 'range', 'aim', ''], ...aims.map(aimRow)]);

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

export function streamTable(summaries: readonly TargetSummary[]): string {
  const head = ['streams of 200 chunks', 'streams/s', 'of bare', 'p50 ms', 'CPU us/stream'];
  const row = (summary: TargetSummary): string[] => [
    summary.name,
    cell(summary.streamsPerSecond.median),
    cell(summary.streamsOfBare.median, 2),
    cell(summary.streamP50Ms.median, 2),
    cell(summary.streamCpuUs.median),
  ];
  return table([head, ...summaries.filter((summary) => Number.isFinite(summary.streamP50Ms.median)).map(row)]);
}

/** How the figures came about, in a line. */
export const methodLine = (tool: LoadTool, rounds: number, seconds: number): string =>
  `medians of ${rounds} rounds of ${seconds} s each; req/s and CPU at 32 connections (${tool}), p50 and p99 at one, ` +
  'streams at 8; ratios and differences within a round';
