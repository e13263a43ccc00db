import { PerformanceObserver } from 'node:perf_hooks';

/** A piece of work that kept the serving thread. */
export interface Section {
  readonly what: string;
  readonly ms: number;
  /** Of what it worked on, where that has a size. */
  readonly bytes?: number;
}

/** Milliseconds between two looks. */
const LOOK_EVERY = 50;
/** Later than this is worth a line in the log, and the gateway counts as overloaded for a second. */
const LATE_MS = 200;
const LATE_FOR_MS = 1000;
/** Shorter work explains nothing, and more of it than this tells nothing more. */
const WORTH_KEEPING_MS = 10;
const MOST_KEPT = 10;

interface LateLook {
  readonly delayMs: number;
  /** The look before it, and itself, by `performance.now()`. */
  readonly from: number;
  readonly until: number;
}

interface EventLoopListener {
  /** How much later than it should a timer came, in milliseconds; many times a second. */
  onDelay(delayMs: number): void;
  /** The same of one that came more than 200 ms late, with what is known to have run. */
  onLate(delayMs: number, ran: readonly Section[]): void;
}

/** Watches how late the event loop is, by a timer, and what work made it late, by what that work says of itself. */
export class EventLoop {
  readonly #listener: EventLoopListener;
  readonly #collections: PerformanceObserver;
  readonly #timer: NodeJS.Timeout;
  #lookedAt = performance.now();
  #lateUntil = 0;
  #kept: (Section & { readonly startedAt: number })[] = [];
  /** A late look, told at the next one: collections are reported a little after they happened. */
  #untold: LateLook | undefined;

  constructor(listener: EventLoopListener) {
    this.#listener = listener;
    this.#timer = setInterval(() => this.#look(), LOOK_EVERY).unref();
    this.#collections = new PerformanceObserver((list) => {
      for (const { startTime, duration } of list.getEntries()) this.#keep('garbage collection', startTime, duration);
    });
    this.#collections.observe({ entryTypes: ['gc'] });
  }

  /** Work that began at `startedAt`, by `performance.now()`, has just ended. */
  ran(what: string, startedAt: number, bytes?: number): void {
    this.#keep(what, startedAt, performance.now() - startedAt, bytes);
  }

  /** Work has just ended that took so many milliseconds. */
  lasted(what: string, ms: number): void {
    if (ms >= WORTH_KEEPING_MS) this.#keep(what, performance.now() - ms, ms);
  }

  /** True while the loop is more than 200 ms late, and for a second after it was. */
  isLate(): boolean {
    const now = performance.now();
    return now < this.#lateUntil || now - this.#lookedAt - LOOK_EVERY > LATE_MS;
  }

  close(): void {
    clearInterval(this.#timer);
    this.#collections.disconnect();
  }

  #keep(what: string, startedAt: number, ms: number, bytes?: number): void {
    if (ms < WORTH_KEEPING_MS || this.#kept.length >= MOST_KEPT) return;
    this.#kept.push({ what, startedAt, ms, ...(bytes === undefined ? {} : { bytes }) });
  }

  #look(): void {
    const [from, until] = [this.#lookedAt, performance.now()];
    const delayMs = Math.max(0, until - from - LOOK_EVERY);
    const late = delayMs > LATE_MS;
    this.#lookedAt = until;
    this.#listener.onDelay(delayMs);
    if (this.#untold !== undefined) this.#tell(this.#untold);
    this.#untold = late ? { delayMs, from, until } : undefined;
    this.#kept = late ? this.#kept.filter(({ startedAt, ms }) => startedAt + ms > from) : [];
    if (late) this.#lateUntil = until + LATE_FOR_MS;
  }

  #tell({ delayMs, from, until }: LateLook): void {
    const ran = this.#kept.filter(({ startedAt, ms }) => startedAt < until && startedAt + ms > from);
    this.#listener.onLate(
      Math.round(delayMs),
      ran.map(({ startedAt: _, ...section }) => ({ ...section, ms: Math.round(section.ms) })),
    );
  }
}
