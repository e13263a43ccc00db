// `npm run test:attack -- [--minutes M] [--seed N] [--step N] [--only <names>] [--except <names>]`: attacks the gateway over HTTP, as
// a child process with a bounded heap, and looks whether anything breaks. Exits with 1 and a report when something does.
//
// What must hold, all the time: no answer is a fault of ours, and each is HTTP and JSON by its schema (checks.ts, wire.ts); every request
// ends (attack.ts); no upstream gets a model or a field that the key's rules and the tables do not permit (oracle.ts, keys.ts, served.ts,
// by tables of their own); no secret and no prompt is shown to others or logged (secrets.ts, run.ts); those who behave are served within a
// second of the gateway's own time (probe.ts asks from a process of its own, delay.ts says what is the gateway's); memory stays bounded
// and the process lives (watches.ts); the ledger's sums are those of what was seen, also after the process was killed (evidence.ts).
//
// world.ts starts the gateway and its upstreams (upstreams.ts), whose answers fail as each step has chosen (faults.ts). player.ts draws a
// generator for each step from generators.ts, which sends through an Attack (attack.ts). `--seed` repeats a run's choices and `--step`
// one step of it; what runs at the same time is up to the machine.
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { createProgress } from '../../../scripts/bench/progress.ts';
import { build } from '../../../src/store/db/sql.ts';
import { chats } from './calls.ts';
import { chosen } from './generators.ts';
import { Player } from './player.ts';
import { startProbing } from './probing.ts';
import { Run } from './run.ts';
import { PROBE } from './served.ts';
import { type Extremes, judgeDepartures, judgeProbe, raiseLimits, watchLife, watchMemory } from './watches.ts';
import { createWorld } from './world.ts';

const CHECK_EVERY_MS = 15_000;
/** After the gateway has been started: it compiles its code. */
const WARM_UP_MS = 3000;
/** For the calls that still run when the last step has ended: their bounds are in world.ts. */
const QUIET_MS = 30_000;

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '5' },
    seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
    only: { type: 'string' },
    except: { type: 'string' },
    step: { type: 'string' },
  },
});
const [minutes, seed] = [Number(values.minutes), Number(values.seed)];
const onlyStep = values.step === undefined ? undefined : Number(values.step);
if (!(minutes > 0) || !Number.isInteger(seed) || (onlyStep !== undefined && !Number.isInteger(onlyStep))) {
  throw new Error('npm run test:attack -- [--minutes M] [--seed N] [--step N] [--only <names>] [--except <names>]');
}
const generators = chosen(values.only, values.except);

const progress = createProgress(process.stderr);
const run = new Run(seed);
const player = new Player(run, generators);
const extremes: Extremes = { memoryMb: 0, delayMs: 0, during: '', late: 0 };

const counted = (): string => {
  const answers = [...run.statuses].sort(([a], [b]) => a - b).map(([status, count]) => `${count} × ${status}`);
  const { memoryMb, delayMs } = extremes;
  return `answers: ${answers.join(', ')}; at most ${Math.round(memoryMb)} MB of memory and ${Math.round(delayMs)} ms of delay`;
};

async function lookAfter(isOver: () => boolean): Promise<void> {
  for (let next = performance.now() + CHECK_EVERY_MS; !isOver(); ) {
    await sleep(500);
    progress.say(`${player.played} steps, ${run.findings.count} findings, ${counted()}`.slice(0, 200));
    if (performance.now() < next) continue;
    next = performance.now() + CHECK_EVERY_MS;
    run.evidence.check(run.world);
    await raiseLimits(run.world);
  }
}

/** Waits until no call is open; what stays open, `checkQuiet` finds. */
async function quiet(): Promise<void> {
  for (const end = performance.now() + QUIET_MS; performance.now() < end; ) {
    await sleep(500);
    if (run.world.db.get(build.selectFrom('calls').select('id').where('state', '=', 'open')) === undefined) return;
  }
}

/** Kills the process in the midst of good calls; another one takes over. */
async function killAndRestart(): Promise<void> {
  const burst = new Player(run, [{ name: 'chats', generator: chats, weight: 1 }], player.next);
  const playing = burst.playUntil(() => run.isOver);
  await sleep(1500);
  run.isOver = true;
  await run.world.serving.kill();
  await playing;
  await run.world.restart();
}

async function attack(): Promise<void> {
  const probing = await startProbing();
  run.world = await createWorld(run.watch(), run.secrets, probing.origin, (text) => run.hear(text));
  process.on('exit', () => void run.world.serving.kill());
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));
  watchLife(run);
  const { gateway, management, serving, bystander } = run.world;
  const memory = watchMemory(run, extremes);
  try {
    await sleep(WARM_UP_MS);
    const masterToken = bystander.tenant.masterKey.token;
    const orders = {
      gateway,
      management,
      token: bystander.token,
      masterToken,
      model: `${PROBE.provider}/${PROBE.model}`,
    };
    probing.start({ pid: serving.pid, ...orders }, (probed) => void judgeProbe(run, extremes, probed));
    const deadline = performance.now() + minutes * 60_000;
    const isOver = (): boolean => run.isOver || performance.now() >= deadline;
    if (onlyStep === undefined) await Promise.all([lookAfter(isOver), player.playUntil(isOver)]);
    else await player.play(onlyStep);
    probing.stop(); // its calls must end too
    if (run.isOver) await run.world.restart();
    else {
      await quiet();
      run.evidence.checkQuiet(run.world);
      await killAndRestart();
    }
    run.evidence.checkQuiet(run.world);
    judgeDepartures(run);
  } finally {
    clearInterval(memory);
    probing.stop();
    await run.world.close();
  }
}

const length = onlyStep === undefined ? `${minutes} minutes` : `step ${onlyStep}`;
process.stdout.write(`seed ${seed}, ${length}: ${generators.map(({ name }) => name).join(', ')}\n`);
const begun = performance.now();
await attack();
progress.end();
process.stdout.write(
  `${player.played} steps in ${Math.round((performance.now() - begun) / 1000)} s; ${counted()} (${extremes.during}).\n`,
);
if (run.latest !== '')
  process.stdout.write(`Latest event loop, waits for a core included: ${run.latest.slice(0, 1500)}\n`);
process.stdout.write(run.findings.count === 0 ? 'Every invariant held.\n' : `${run.findings.summary(seed)}\n`);
process.exit(run.findings.count === 0 ? 0 : 1);
