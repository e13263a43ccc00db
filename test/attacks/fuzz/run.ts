// A run: the world under attack, what is known of the calls on their way, and what was found.

import { setTimeout as sleep } from 'node:timers/promises';
import { Evidence } from './evidence.ts';
import type { StepRecord } from './findings.ts';
import { Findings } from './findings.ts';
import { PROMPT_WORDS } from './requests.ts';
import { Secrets } from './secrets.ts';
import type { Marked, Watch } from './upstreams.ts';
import type { World } from './world.ts';

const MARK = /mark-\d+-\d+/;
/** From the moment when connections break to the moment when the end of the process is known. */
const END_KNOWN_MS = 500;
const LATE = /"delayMs":(\d+).*"the event loop was late/;
/** Lines about a late event loop that are kept, the newest ones. */
const LATE_LINES = 100;
/** Lines of the log that are kept, the newest ones: some ten seconds. */
const LOG_LINES = 5000;
/** Longer than any secret, so that none is missed between two pieces of the log. */
const LOG_TAIL = 300;

export class Run {
  readonly seed: number;
  readonly findings: Findings;
  readonly evidence: Evidence;
  readonly secrets = new Secrets();
  readonly marks = new Map<string, Marked>();
  /** Steps that are being played, and their requests. */
  readonly records = new Map<number, StepRecord>();
  readonly statuses = new Map<number, number>();
  /** From when the process is killed, or has ended: connections may break. */
  isOver = false;
  /** What the gateway says of the moment when its event loop was latest: a line of its log, if there is one. */
  latest = '';
  #latestMs = 0;
  /** Lines of its log about its late event loop, and when they were heard. */
  readonly #late: { readonly at: number; readonly line: string }[] = [];
  readonly #lines: string[] = [];
  #begunLine = '';
  #world: World | undefined;
  #logTail = '';

  constructor(seed: number) {
    this.seed = seed;
    this.findings = new Findings(seed);
    this.evidence = new Evidence(this.findings);
  }

  get world(): World {
    if (this.#world === undefined) throw new Error('the world is not made yet');
    return this.#world;
  }

  set world(world: World) {
    this.#world = world;
  }

  /** Whether the process still lives, told late enough that its end is known: its connections break a moment before. */
  async isAlive(): Promise<boolean> {
    await Promise.race([this.world.serving.ended, sleep(END_KNOWN_MS)]);
    return !this.isOver;
  }

  /** The steps that run. */
  current(): StepRecord[] {
    return [...this.records.values()];
  }

  count(status: number): void {
    this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
  }

  /** What the fake upstreams ask and tell. */
  watch(): Watch {
    return {
      callIn: (text) => {
        const mark = MARK.exec(text)?.[0];
        const call = mark === undefined ? undefined : this.marks.get(mark);
        return mark === undefined || call === undefined ? undefined : { mark, call };
      },
      dispatched: (mark, call) => this.evidence.dispatched(mark, call),
      broken: (fault, { provider, path, body }, mark) => {
        const record = this.records.get(Number(mark?.split('-')[1]));
        const detail = `${provider} got ${fault}: ${path} ${(JSON.stringify(body) ?? 'no JSON').slice(0, 400)}`;
        this.findings.report(
          'nothing is called that the rules do not permit',
          detail,
          ...(record === undefined ? [] : [record]),
        );
      },
      foreignSecretIn: (text, provider) => this.secrets.foreignIn(text, (owner) => owner === provider)?.owner,
    };
  }

  /** Looks for what no log may hold, and for what kept everyone waiting. */
  hear(text: string): void {
    const heard = this.#logTail + text;
    this.#logTail = heard.slice(-LOG_TAIL);
    this.#hearOfLateness(text);
    const secret = this.secrets.foreignIn(heard);
    const at = secret?.at ?? heard.indexOf(PROMPT_WORDS);
    if (at === -1) return;
    const lines = heard.slice(Math.max(0, at - 400), at + 200);
    this.findings.report('no secret and no prompt is logged', `${secret?.owner ?? 'a prompt'}: ${lines}`);
    this.#logTail = '';
  }

  #hearOfLateness(text: string): void {
    const lines = (this.#begunLine + text).split('\n');
    this.#begunLine = lines.pop() ?? '';
    this.#lines.push(...lines);
    this.#lines.splice(0, this.#lines.length - LOG_LINES);
    for (const line of lines) {
      const delayMs = Number(LATE.exec(line)?.[1] ?? 0);
      if (delayMs === 0) continue;
      this.#late.push({ at: performance.now(), line });
      if (this.#late.length > LATE_LINES) this.#late.shift();
      if (delayMs <= this.#latestMs) continue;
      this.#latestMs = delayMs;
      this.latest = line;
    }
  }

  /** Lines of the gateway's log that name a call. */
  logOf(mark: string): string[] {
    return this.#lines.filter((line) => line.includes(mark));
  }

  /** What the gateway's log said of its late event loop in the last milliseconds. */
  lateSince(ms: number): string[] {
    const since = performance.now() - ms;
    return this.#late.filter(({ at }) => at >= since).map(({ line }) => line);
  }
}
