import type { HeapProfiler, Profiler, Runtime } from 'node:inspector';
import { Session } from 'node:inspector/promises';
import { add, type CostBySteps } from './figures.ts';
import type { Pass } from './pass.ts';
import { type Frame, stepOf } from './steps.ts';

const SAMPLE_US = 100;
/** So fine that nearly every object is a sample. */
const SAMPLE_BYTES = 16;
const STACK_DEPTH = 128;
const FUNCTIONS = 30;

const session = new Session();
session.connect();

const frameOf = ({ functionName, url }: Runtime.CallFrame): Frame => ({ name: functionName, url });

/** What a function is called in a list: one of V8 or of an addon by who called it. */
function labelOf([own, ...callers]: readonly Frame[]): string {
  const file = (url: string): string => url.replace(/^.*\/(?=(?:src|node_modules)\/)/, '');
  if (own === undefined) return '';
  if (own.url !== '') return `${own.name || '(anonymous)'} ${file(own.url)}`;
  const caller = callers.find(({ url }) => url !== '');
  if (caller === undefined) return own.name;
  return `${own.name || '(native)'} < ${caller.name || '(anonymous)'} ${file(caller.url)}`;
}

/** Where the main thread is, 10,000 times a second; that it waits is no cost. */
export const cpuPass: Pass = {
  async start() {
    await session.post('Profiler.enable');
    await session.post('Profiler.setSamplingInterval', { interval: SAMPLE_US });
    await session.post('Profiler.start');
  },
  async stop() {
    const { profile } = await session.post('Profiler.stop');
    const nodes = new Map(profile.nodes.map((node) => [node.id, node]));
    const samples = new Map<number, number>();
    for (const id of profile.samples ?? []) samples.set(id, (samples.get(id) ?? 0) + 1);
    const cost: CostBySteps = {};
    const functions = new Map<string, number>();
    const visit = (node: Profiler.ProfileNode, callers: readonly Frame[]): void => {
      const frames = [frameOf(node.callFrame), ...callers];
      const own = samples.get(node.id) ?? 0;
      if (own > 0 && node.callFrame.functionName !== '(idle)') {
        add(cost, stepOf(frames), 'cpuUs', own);
        functions.set(labelOf(frames), (functions.get(labelOf(frames)) ?? 0) + own);
      }
      for (const child of node.children ?? []) {
        const next = nodes.get(child);
        if (next !== undefined) visit(next, frames);
      }
    };
    const [root] = profile.nodes;
    if (root !== undefined) visit(root, []);
    return { cost, functions: [...functions].sort(([, one], [, other]) => other - one).slice(0, FUNCTIONS) };
  },
};

/** Bytes of the heap, those included that the collector has taken back. */
export const allocationPass: Pass = {
  async start() {
    await session.post('HeapProfiler.enable');
    await session.post('HeapProfiler.startSampling', {
      samplingInterval: SAMPLE_BYTES,
      stackDepth: STACK_DEPTH,
      includeObjectsCollectedByMajorGC: true,
      includeObjectsCollectedByMinorGC: true,
    });
  },
  async stop() {
    const { profile } = await session.post('HeapProfiler.stopSampling');
    const cost: CostBySteps = {};
    const visit = (node: HeapProfiler.SamplingHeapProfileNode, callers: readonly Frame[]): void => {
      const frames = [frameOf(node.callFrame), ...callers];
      if (node.selfSize > 0) add(cost, stepOf(frames), 'bytes', node.selfSize);
      for (const child of node.children) visit(child, frames);
    };
    visit(profile.head, []);
    return { cost };
  },
};
