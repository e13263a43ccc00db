import type { ChildProcess } from 'node:child_process';
import path from 'node:path';
import { type Gateway, type Runner, startGateway } from '../gateway.ts';
import type { Target } from '../target.ts';
import type { PassResult } from './pass.ts';
import type { PassName, ProbeRequest, Used } from './probe-answers.ts';

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

export async function startProbedGateway(folder: string, upstream: Target): Promise<ProbedGateway> {
  const runner: Runner = { under: [], nodeArgs: ['--import', PROBE], hasChannel: true };
  const gateway = await startGateway(folder, upstream, { runner });
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
