import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { type Calls, callWhile } from './analysis.ts';
import { type Gateway, startGateway } from './gateway.ts';
import type { Progress } from './progress.ts';
import { startUpstream } from './servers.ts';
import { CALLS, fillCalls } from './usage-calls.ts';

const QUIET_SECONDS = 10;
/** Each report is made again and again for about so long, so that there are enough calls meanwhile. */
const REPORT_SECONDS = 10;

export interface UsageFigure {
  readonly query: string;
  /** Of one report, on average. */
  readonly seconds: number;
  /** Calls meanwhile. */
  readonly calls: Calls;
}

export interface UsageFigures {
  readonly stored: number;
  /** Calls while nothing is reported. */
  readonly quiet: Calls;
  readonly reports: readonly UsageFigure[];
}

const QUERIES = [
  'usage?granularity=day',
  'usage?granularity=hour&groupBy=model&limit=10000',
  'usage?granularity=total&groupBy=member,model,provider,project,key',
  'decisions?reason=deny_models&model=model-3',
  'decisions?clientRequestId=nobody',
];

async function report({ managementUrl, masterKey }: Gateway, query: string): Promise<void> {
  const response = await fetch(`${managementUrl}/v1/master/${query}`, {
    headers: { authorization: `Bearer ${masterKey}` },
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${query} answered ${response.status}: ${text.slice(0, 500)}`);
}

/** Usage reports and searches over a million calls, next to a running gateway. */
export async function measureUsage(folder: string, progress: Progress): Promise<UsageFigures> {
  mkdirSync(folder);
  progress.say('usage: starting the servers');
  const gateway = await startGateway(folder, await startUpstream());
  await fillCalls(path.join(folder, 'data'), (done, all) => progress.say(`usage: storing calls, ${done} of ${all}`));
  progress.say('usage: calls without a report');
  await callWhile(gateway, pause(QUIET_SECONDS * 1000)); // Warm-up.
  const quiet = await callWhile(gateway, pause(QUIET_SECONDS * 1000));
  const reports: UsageFigure[] = [];
  for (const query of QUERIES) {
    progress.say(`usage: ${query}`);
    const start = performance.now();
    let made = 0;
    const seconds = (): number => (performance.now() - start) / 1000;
    const work = async (): Promise<void> => {
      for (; seconds() < REPORT_SECONDS; made += 1) await report(gateway, query);
    };
    const calls = await callWhile(gateway, work());
    reports.push({ query, seconds: seconds() / made, calls });
  }
  return { stored: CALLS, quiet, reports };
}
