import type { ChildProcess } from 'node:child_process';
import { cpSync, existsSync } from 'node:fs';
import path from 'node:path';
import { cliCommand } from '../../runtime.js';
import { type Gateway, type Runner, startGateway } from '../gateway.ts';
import type { Target } from '../target.ts';
import type { PassName, PassResult, ProbeRequest, Used } from './probe-answers.ts';

const PROBE = path.join(import.meta.dirname, '..', 'probe.ts');

/** A gateway whose process counts what its calls cost. */
export interface ProbedGateway extends Gateway {
  used(): Promise<Used>;
  /** What `work` costs. */
  counted(pass: PassName, work: () => Promise<void>): Promise<PassResult>;
}

const isUsed = (answer: unknown): answer is Used => typeof answer === 'object' && answer !== null && 'cpuUs' in answer;

const isResult = (answer: unknown): answer is PassResult =>
  typeof answer === 'object' && answer !== null && 'cost' in answer;

/** The child's next message. */
function ask(child: ChildProcess, request: ProbeRequest): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const ended = (): void => reject(new Error(`the gateway ended before it answered to ${request}`));
    child.once('exit', ended);
    child.once('message', (answer: unknown) => {
      child.off('exit', ended);
      resolve(answer);
    });
    child.send(request);
  });
}

/** An emulated Node needs the cache to start in time, and what it compiles itself is of no use to others. */
function copiedCache(folder: string): string {
  const copy = path.join(folder, 'compiled');
  const { NODE_COMPILE_CACHE: compiled } = cliCommand.env;
  if (compiled !== undefined && existsSync(compiled)) cpSync(compiled, copy, { recursive: true });
  return copy;
}

/** @param under an emulator's command that runs Node, or nothing */
export async function startProbedGateway(
  folder: string,
  upstream: Target,
  under: readonly string[] = [],
): Promise<ProbedGateway> {
  const runner: Runner = { under, nodeArgs: ['--import', PROBE], hasChannel: true };
  const variables = under.length === 0 ? {} : { NODE_COMPILE_CACHE: copiedCache(folder) };
  const gateway = await startGateway(folder, upstream, { runner, variables });
  const { child } = gateway;
  return {
    ...gateway,
    async used() {
      const answer = await ask(child, 'read');
      if (!isUsed(answer)) throw new Error('the probe did not tell what was used');
      return answer;
    },
    async counted(pass, work) {
      await ask(child, `start ${pass}`);
      await work();
      const answer = await ask(child, `stop ${pass}`);
      if (!isResult(answer)) throw new Error(`the probe did not tell what the pass ${pass} counted`);
      return answer;
    },
  };
}
