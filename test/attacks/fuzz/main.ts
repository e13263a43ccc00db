// `npm run test:attack`: attacks the product over HTTP, as a child process with a bounded heap, and looks whether anything breaks.
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { createProgress } from '../../../scripts/bench/progress.ts';
import { CAN_READ_MEMORY, residentMb } from '../../../scripts/bench/resident-memory.ts';
import { getOrMake } from '../../../src/domain/get-or-make.ts';
import { build } from '../../../src/store/sql.ts';
import { Random } from '../../crash/random.ts';
import { Attack, LOST_MS } from './attack.ts';
import { chats } from './calls.ts';
import { STARVED_MS } from './delay.ts';
import type { StepRecord } from './findings.ts';
import { chosen, type Named } from './generators.ts';
import { type Probed, startProbing } from './probing.ts';
import { Run } from './run.ts';
import { createWorld, PROBE_MODEL, RESIDENT_MB } from './world.ts';

const WORKERS = 24;
/** The server's own part of an answer's delay, for those who behave. */
const MOST_DELAY_MS = 1000;
const CHECK_EVERY_MS = 15_000;
/** After the product has been started: it compiles its code. */
const WARM_UP_MS = 3000;

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
let [steps, peakMb, worstMs] = [0, 0, 0];
/** Why no step is played any more. */
let ending: string | undefined;

/** Each step's choices follow from the seed and its number alone, whatever the others do. */
const randomOf = (step: number): Random => new Random(Math.imul(seed, 0x9e3779b1) ^ Math.imul(step + 1, 0x85ebca6b));

function draw(random: Random): Named {
  const total = generators.reduce((sum, { weight }) => sum + weight, 0);
  let left = random.next() * total;
  for (const generator of generators) {
    left -= generator.weight;
    if (left < 0) return generator;
  }
  return generators[0];
}

/** How many steps of each generator run, and who waits for his turn. */
const turns = new Map<string, { running: number; readonly waiting: (() => void)[] }>();

async function inTurn({ name, most = WORKERS }: Named, work: () => Promise<void>): Promise<void> {
  const turn = getOrMake(turns, name, () => ({ running: 0, waiting: [] }));
  if (turn.running >= most) await new Promise<void>((next) => turn.waiting.push(next));
  else turn.running += 1;
  try {
    if (ending === undefined) await work();
  } finally {
    const next = turn.waiting.shift();
    if (next === undefined) turn.running -= 1;
    else next();
  }
}

async function play(step: number): Promise<void> {
  const random = randomOf(step);
  const drawn = draw(random);
  await inTurn(drawn, () => playIt(step, random, drawn));
}

async function playIt(step: number, random: Random, { name, generator }: Named): Promise<void> {
  const record: StepRecord = { step, generator: name, sent: [] };
  run.records.set(step, record);
  try {
    await generator(new Attack(run, random, record));
  } finally {
    run.records.delete(step);
  }
}

async function work(deadline: number): Promise<void> {
  while (ending === undefined && performance.now() < deadline) await play(steps++);
}

const current = (): StepRecord[] => [...run.records.values()];

function judgeProbe({ kind, outcome, tookMs, delayMs }: Probed): void {
  if (run.isOver) return;
  const isStarved = tookMs - delayMs > STARVED_MS;
  if (outcome !== 'served' && !isStarved)
    run.findings.report('those who behave are served', `${kind}: ${outcome}`, ...current());
  worstMs = Math.max(worstMs, delayMs);
  if (delayMs <= MOST_DELAY_MS) return;
  const times = `${Math.round(delayMs)} ms of its own, ${Math.round(tookMs)} ms in all`;
  run.findings.report('nobody who behaves waits for longer than a second', `${kind}: ${times}`, ...current());
}

function watchMemory(): NodeJS.Timeout {
  return setInterval(() => {
    if (!CAN_READ_MEMORY || ending !== undefined || run.isOver) return;
    const now = residentMb(run.world.serving.pid);
    peakMb = Math.max(peakMb, now);
    if (now > RESIDENT_MB)
      run.findings.report(`resident memory stays below ${RESIDENT_MB} MB`, `${Math.round(now)} MB`, ...current());
  }, 200);
}

/** Ends the run when the product ends by itself. */
function watchLife(): void {
  const { serving } = run.world;
  void serving.ended.then(() => {
    if (run.isOver) return;
    run.isOver = true;
    ending = 'the product has ended';
    run.findings.report('the process lives', serving.complaints.slice(-600), ...current());
  });
}

/** Raises the limits by what was spent, so that capped keys are never at rest for long. */
async function raiseLimits(): Promise<void> {
  const { db, keys, attacked, management } = run.world;
  for (const { id, spec } of keys) {
    const { usageLimit, periodUsageLimit } = spec.limits ?? {};
    const row = db.get(build.selectFrom('keys').select(['usage_pico', 'period_usage_pico']).where('id', '=', id));
    if (row === undefined || spec.limits === undefined) continue;
    const raised = (limit: unknown, spent: bigint): string => (Number(spent) / 1e12 + Number(limit)).toFixed(6);
    const limits = {
      ...spec.limits,
      ...(usageLimit === undefined ? {} : { usageLimit: raised(usageLimit, row.usage_pico) }),
      ...(periodUsageLimit === undefined ? {} : { periodUsageLimit: raised(periodUsageLimit, row.period_usage_pico) }),
    };
    const headers = { authorization: `Bearer ${attacked.masterKey.token}`, 'content-type': 'application/json' };
    const sent = { method: 'PATCH', headers, body: JSON.stringify(limits) };
    await fetch(`${management}/v1/master/keys/${id}`, sent).catch(() => undefined); // another time
  }
}

async function lookAfter(deadline: number): Promise<void> {
  for (let next = performance.now() + CHECK_EVERY_MS; ending === undefined && performance.now() < deadline; ) {
    await sleep(500);
    const answers = [...run.statuses].sort(([a], [b]) => a - b).map(([status, count]) => `${count} × ${status}`);
    progress.say(
      `${steps} steps; ${answers.slice(0, 8).join(', ')}; ${Math.round(peakMb)} MB, ${Math.round(worstMs)} ms at worst; ${run.findings.count} findings`,
    );
    if (performance.now() < next) continue;
    next = performance.now() + CHECK_EVERY_MS;
    run.evidence.check(run.world);
    await raiseLimits();
  }
}

/** Waits until no call is open, but not for ever. */
async function quiet(): Promise<void> {
  for (let left = 60; left > 0; left -= 1) {
    await sleep(500);
    if (run.world.db.get(build.selectFrom('calls').select('id').where('state', '=', 'open')) === undefined) return;
  }
}

/** Good calls, in the midst of which the process is killed; then another one takes over. */
async function killAndRestart(): Promise<void> {
  const burst = Promise.all(
    Array.from({ length: WORKERS }, async (_, worker) => {
      for (let time = 0; !run.isOver; time += 1) {
        const step = steps + worker + time * WORKERS;
        const record: StepRecord = { step, generator: 'chats', sent: [] };
        await chats(new Attack(run, randomOf(step), record));
      }
    }),
  );
  await sleep(1500);
  run.isOver = true;
  await run.world.serving.kill();
  await burst;
  await run.world.restart();
}

/** No connection may lead to where only this machine or its network is. */
function judgeDepartures(): void {
  const private_ = run.world
    .departures()
    .find((line) =>
      /connect to (?:10\.|127\.|169\.254\.|172\.(?:1[6-9]|2\d|3[01])\.|192\.168\.|0\.|\[?(?:::|f[cd]|fe80))/.test(line),
    );
  if (private_ !== undefined) run.findings.report('no private address is reached', private_);
}

async function attackAll(): Promise<void> {
  const probing = await startProbing();
  run.world = await createWorld(run.watch(), run.secrets, probing.origin, (text) => run.hear(text));
  process.on('exit', () => void run.world.serving.kill());
  watchLife();
  const { gateway, management, serving, bystander } = run.world;
  const memory = watchMemory();
  try {
    await sleep(WARM_UP_MS);
    const orders = {
      pid: serving.pid,
      gateway,
      management,
      token: bystander.token,
      masterToken: bystander.tenant.masterKey.token,
      model: PROBE_MODEL,
    };
    probing.start(orders, judgeProbe);
    const deadline = performance.now() + minutes * 60_000;
    if (onlyStep !== undefined) await play(onlyStep);
    else await Promise.all([lookAfter(deadline), ...Array.from({ length: WORKERS }, () => work(deadline))]);
    probing.stop(); // its calls must end too
    if (ending === undefined) {
      await quiet();
      run.evidence.checkQuiet(run.world);
      await killAndRestart();
    } else {
      await sleep(LOST_MS / 40);
      await run.world.restart();
    }
    run.evidence.checkQuiet(run.world);
    judgeDepartures();
  } finally {
    clearInterval(memory);
    probing.stop();
    await run.world.close();
  }
}

process.stdout.write(
  `seed ${seed}, ${onlyStep === undefined ? `${minutes} minutes` : `step ${onlyStep}`}: ${generators.map(({ name }) => name).join(', ')}\n`,
);
const begun = performance.now();
await attackAll();
progress.end();
const answers = [...run.statuses].sort(([a], [b]) => a - b).map(([status, count]) => `${count} × ${status}`);
process.stdout.write(
  `${steps} steps in ${Math.round((performance.now() - begun) / 1000)} s; answers: ${answers.join(', ')}; ` +
    `at most ${Math.round(peakMb)} MB of memory and ${Math.round(worstMs)} ms of delay${ending === undefined ? '' : `; ${ending}`}.\n`,
);
process.stdout.write(run.findings.count === 0 ? 'Every invariant held.\n' : `${run.findings.summary(seed)}\n`);
process.exit(run.findings.count === 0 ? 0 : 1);
