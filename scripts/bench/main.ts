// npm run bench: the gateway next to a bare proxy, a Koa proxy and the upstream itself, then its memory under many streams and
// after ten minutes of load, the decision alone, the analyses, usage reports, and what a call costs by step.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { measureAnalyses } from './analysis.ts';
import { stopChildren } from './children.ts';
import { benchCost } from './cost/bench-cost.ts';
import { measureDecisions } from './decision.ts';
import { type Gateway, otherCheckout, startGateway } from './gateway.ts';
import { addCappedKey } from './gateway-rules.ts';
import { measureLoad } from './load.ts';
import { describeMachine } from './machine.ts';
import { measureManyStreams } from './many-streams.ts';
import { CONNECTIONS, findLoadTool } from './measure-throughput.ts';
import { type BenchOptions, readOptions } from './options.ts';
import { createProgress, type Progress } from './progress.ts';
import {
  aimTable,
  analysisTable,
  comparisonTable,
  decisionTable,
  machineLine,
  methodLine,
  requestTable,
  streamMemoryTable,
  streamTable,
  sustainedMemoryTable,
  usageTable,
} from './report.ts';
import { CAN_READ_MEMORY } from './resident-memory.ts';
import { startProxies, startUpstream } from './servers.ts';
import { summarizeLoad } from './summary.ts';
import { measureSustained } from './sustained-load.ts';
import type { Target } from './target.ts';
import { measureUsage } from './usage.ts';

/** The gateway of another checkout, with a capped key of its own. */
async function otherTargets(checkout: string, folder: string, upstream: Target): Promise<Target[]> {
  const own = path.join(folder, 'before');
  mkdirSync(own);
  const { target, apiKey, managementUrl, masterKey } = await startGateway(own, upstream, {
    checkout: await otherCheckout(checkout),
  });
  return [
    { ...target, name: 'gateway before', apiKey },
    { ...target, name: 'a capped key before', apiKey: await addCappedKey(managementUrl, masterKey) },
  ];
}

async function benchLoad(options: BenchOptions, folder: string, progress: Progress) {
  const tool = findLoadTool();
  progress.say('starting the servers');
  const upstream = await startUpstream();
  const proxies = await startProxies(upstream);
  const gateway = await startGateway(folder, upstream);
  const hits: Target = { ...gateway.target, name: 'its cache hits', streams: false, equalBodies: true };
  const cappedKey = await addCappedKey(gateway.managementUrl, gateway.masterKey);
  const capped: Target = { ...gateway.target, name: 'a capped key', apiKey: cappedKey };
  const others = options.against === undefined ? [] : await otherTargets(options.against, folder, upstream);
  const targets = [upstream, ...proxies, gateway.target, hits, capped, ...others];
  const { rounds: count, seconds } = options;
  const rounds = await measureLoad({ targets, apiKey: gateway.apiKey, tool, rounds: count, seconds, progress });
  const summaries = summarizeLoad(targets, rounds);
  progress.end();
  console.log(`\n${methodLine(tool, count, seconds)}\n`);
  console.log(`${requestTable(summaries)}\n\n${streamTable(summaries)}\n`);
  for (const summary of summaries) {
    if (summary.name === 'gateway' || summary.name === 'a capped key') console.log(`${aimTable(summary)}\n`);
  }
  if (others.length > 0) console.log(`${comparisonTable(rounds)}\n`);
  await stopChildren(); // The decision alone has the machine to itself.
  return { tool, connections: CONNECTIONS, rounds, summaries };
}

/** Starts a gateway of its own, and measures its memory. */
async function benchMemory<Figures>(
  folder: string,
  progress: Progress,
  measure: (gateway: Gateway) => Promise<Figures>,
  tableOf: (figures: Figures) => string,
): Promise<Figures | undefined> {
  if (!CAN_READ_MEMORY) {
    console.log('\nmemory is not measured: this system has no /proc');
    return undefined;
  }
  progress.say('starting the servers');
  const own = mkdtempSync(path.join(folder, 'memory-'));
  const gateway = await startGateway(own, await startUpstream());
  const figures = await measure(gateway);
  progress.end();
  console.log(`\n${tableOf(figures)}`);
  await stopChildren();
  return figures;
}

const benchStreams = (folder: string, progress: Progress) =>
  benchMemory(folder, progress, (gateway) => measureManyStreams(gateway, progress), streamMemoryTable);

const benchSustained = (folder: string, progress: Progress) =>
  benchMemory(folder, progress, (gateway) => measureSustained(gateway, findLoadTool(), progress), sustainedMemoryTable);

async function benchDecisions(folder: string, progress: Progress) {
  const figures = await measureDecisions(folder, progress);
  progress.end();
  console.log(`\n${decisionTable(figures)}`);
  return figures;
}

async function benchAnalyses(folder: string, progress: Progress) {
  const figures = await measureAnalyses(path.join(folder, 'analysis'), progress);
  progress.end();
  console.log(`\n${analysisTable(figures)}`);
  await stopChildren();
  return figures;
}

async function benchUsage(folder: string, progress: Progress) {
  const figures = await measureUsage(path.join(folder, 'usage'), progress);
  progress.end();
  console.log(`\n${usageTable(figures)}`);
  await stopChildren();
  return figures;
}

async function bench(options: BenchOptions, folder: string): Promise<void> {
  const progress = createProgress(process.stderr);
  const machine = describeMachine();
  console.log(machineLine(machine));
  try {
    const load = options.parts.has('load') ? await benchLoad(options, folder, progress) : undefined;
    const streams = options.parts.has('streams') ? await benchStreams(folder, progress) : undefined;
    const memory = options.parts.has('memory') ? await benchSustained(folder, progress) : undefined;
    const decisions = options.parts.has('decision') ? await benchDecisions(folder, progress) : undefined;
    const analyses = options.parts.has('analysis') ? await benchAnalyses(folder, progress) : undefined;
    const usage = options.parts.has('usage') ? await benchUsage(folder, progress) : undefined;
    const cost = options.parts.has('cost')
      ? await benchCost(folder, options.budget, options.counter, progress)
      : undefined;
    const { seconds } = options;
    const report = {
      machine,
      finishedAt: new Date(),
      seconds,
      load,
      streams,
      memory,
      decisions,
      analyses,
      usage,
      cost,
    };
    if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify(report, null, 2)}\n`);
  } finally {
    progress.end();
  }
}

const folder = mkdtempSync(path.join(os.tmpdir(), 'portcullis-bench-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.once(signal, () => void stopChildren().finally(() => process.exit(130)));
}
try {
  await bench(readOptions(process.argv.slice(2), process.env), folder);
} catch (error) {
  console.error(error instanceof Error ? `bench: ${error.message}` : error);
  process.exitCode = 1;
} finally {
  await stopChildren();
}
