import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readSync, truncateSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { Readable, Writable } from 'node:stream';
import { startChild } from '../children.ts';

/** How user-mode instructions are counted. */
export type CounterName = 'perf' | 'qemu';

/** Counts the user-mode instructions of a gateway's main thread: what V8's helpers compile is no cost of a call. */
export interface InstructionCounter {
  readonly name: CounterName;
  /** A command that the gateway's Node is to run under; empty: none. */
  readonly under: readonly string[];
  /** Instructions while `work` is done. @param pid of the gateway, which is its main thread's too */
  count(pid: number, work: () => Promise<void>): Promise<number>;
}

const EVENT = 'instructions:u';

const succeeds = (command: string, args: readonly string[]): boolean =>
  spawnSync(command, args, { stdio: 'ignore' }).status === 0;

/** Hardware counters by `perf`: whether the machine has them and lets us read them. */
function hasHardwareCounters(): boolean {
  const { status, stderr } = spawnSync('perf', ['stat', '-x', ',', '-e', EVENT, 'true'], { encoding: 'utf8' });
  return status === 0 && /^\d+,/m.test(stderr);
}

/** Commands go to perf over one pipe, its acknowledgements come over another; it writes what it counted when it ends. */
async function countByPerf(pid: number, work: () => Promise<void>): Promise<number> {
  const args = ['stat', '-x', ',', '-e', EVENT, '-t', String(pid), '-D', '-1', '--control', 'fd:3,4'];
  const perf = startChild('perf', args, { stdio: ['ignore', 'ignore', 'pipe', 'pipe', 'pipe'] });
  const [, , stderr, control, answers] = perf.stdio;
  if (!(stderr instanceof Readable && control instanceof Writable && answers instanceof Readable)) {
    throw new Error('perf has no pipes');
  }
  let said = '';
  stderr.on('data', (text: Buffer) => {
    said += text.toString('latin1');
  });
  const tell = async (command: string): Promise<void> => {
    control.write(`${command}\n`);
    await once(answers, 'data');
  };
  await tell('enable');
  await work();
  await tell('disable');
  const closed = once(perf, 'close');
  perf.kill('SIGINT');
  await closed;
  const instructions = /^(\d+),/m.exec(said)?.[1];
  if (instructions === undefined) throw new Error(`perf counted nothing: ${said}`);
  return Number(instructions);
}

const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'x86_64', arm64: 'aarch64' };
const emulator = `qemu-${ARCHITECTURES[process.arch] ?? process.arch}`;
/** Versions of the plug-ins' interface that have what ours needs; an emulator takes one or a few of them. */
const PLUGIN_VERSIONS = [1, 2, 3, 4, 5];
/** As in count-instructions.c. */
const THREADS = 512;
const BYTES_APART = 64;

/** Compiles the plug-in for the emulator that is there; throws with what is missing. */
function emulate(folder: string): InstructionCounter {
  const counts = path.join(folder, 'instructions');
  writeFileSync(counts, '');
  truncateSync(counts, THREADS * BYTES_APART);
  const source = path.join(import.meta.dirname, 'count-instructions.c');
  const commands = PLUGIN_VERSIONS.map((version): readonly string[] => {
    const plugin = path.join(folder, `count-instructions-${version}.so`);
    const compiled = succeeds('cc', ['-O2', '-shared', '-fPIC', `-DAPI=${version}`, '-o', plugin, source]);
    return compiled ? [emulator, '-plugin', `${plugin},counts=${counts}`] : [];
  });
  const under = commands.find(
    ([command, ...args]) => command !== undefined && succeeds(command, [...args, '/bin/true']),
  );
  if (under === undefined)
    throw new Error(`instructions are counted by ${emulator} with plug-ins, and by a C compiler, cc`);
  const read = (): number => {
    const ofMainThread = new BigUint64Array(1);
    const file = openSync(counts, 'r');
    readSync(file, ofMainThread, 0, ofMainThread.byteLength, 0);
    closeSync(file);
    return Number(ofMainThread[0]);
  };
  return {
    name: 'qemu',
    under,
    async count(_, work) {
      const before = read();
      await work();
      return read() - before;
    },
  };
}

/**
 * The counter of that name; without one, hardware counters where there are any.
 * @param folder for what the emulator needs
 * @throws Error where a counter that was asked for is not there
 */
export function findCounter(name: CounterName | undefined, folder: string): InstructionCounter | undefined {
  if (name === 'qemu') return emulate(folder);
  if (hasHardwareCounters()) return { name: 'perf', under: [], count: countByPerf };
  if (name === 'perf')
    throw new Error('perf counts no instructions here: it is not installed, or has no hardware counters');
  return undefined;
}
