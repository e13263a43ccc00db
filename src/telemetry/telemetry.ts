import { openSync } from 'node:fs';
import path from 'node:path';
import { PerformanceObserver } from 'node:perf_hooks';
import pino from 'pino';
import { ConfigError } from '../config/variables.ts';
import { formatUsd } from '../domain/limits.ts';
import type { Mapping } from '../domain/model.ts';
import { getOrMake } from '../lib/collections.ts';
import { makeFolders } from '../lib/files.ts';
import { createMetrics, type Metrics, type MetricTarget } from './metrics.ts';

type LogStream = ReturnType<typeof pino.destination>;

interface TelemetryOptions {
  /** Least severe level that is written. */
  level: 'debug' | 'info' | 'warn' | 'error' | 'silent';
  /** Target of the access log: a file's path, `stdout`, or `off`. */
  accessLog: string;
}

/** One line of the access log: what happened, never what was said. No prompt, no secret. */
interface AccessRecord {
  requestId: string;
  method: string;
  path: string;
  status: number;
  /** Milliseconds from the request's arrival to the connection's or answer's end. */
  durationMs: number;
  /** True when the client left before the answer was complete. */
  aborted: boolean;
  clientIp: string | null;
  /** Key of the caller of the gateway, or of the management host. */
  keyId: string | undefined;
  masterKeyId: string | undefined;
  /** Member who is signed in at the pages. */
  memberId: string | undefined;
  /** The MCP tool that was called. */
  tool: string | undefined;
  callId: string | undefined;
  decisionId: string | undefined;
  /** Provider that served the call. */
  provider: string | undefined;
  model: string | undefined;
  /** Outcome of the policy, and its reason for a denial: `deny_models`. */
  outcome: 'permit' | 'deny' | undefined;
  reason: string | undefined;
  /** Cost of the call, in USD. */
  cost: string | undefined;
  code: string | undefined;
}

export interface AttemptFailure {
  readonly errorType: string;
  /** Our words and the system's. */
  readonly detail: string;
  /** The caller's message, which may quote the upstream and with it the prompt: logged at `debug` alone. */
  readonly said: string;
}

/** Why a credential of the environment does not work. */
interface ProviderFailure {
  readonly cause: string;
  readonly explanation: string;
  /** Nothing is known of the credential: the provider was not reached. */
  readonly isUnreached: boolean;
}

/** Everything that is logged or counted, one helper for each event, so that redaction and names live in one place. */
export interface Telemetry
  extends Omit<Metrics, 'requestEnded' | 'attemptEnded' | 'overReserved' | 'loopDelayed' | 'providerChecked'> {
  /** A credential of the environment was tried at the start. @param source its variable @param failure undefined: it works */
  providerChecked(provider: string, source: string, failure: ProviderFailure | undefined): void;
  /** @param route the path of the route as it was declared, or `other` */
  access(record: AccessRecord, route: string): void;
  /** A fault of ours that a caller saw as a 500 or 503, or what ended a stream midway: its cause, for the operator alone. */
  failure(requestId: string, error: unknown): void;
  attemptSucceeded(target: MetricTarget): void;
  /** An upstream attempt that failed. */
  attemptFailed(callId: string, mapping: Pick<Mapping, 'id'> & MetricTarget, failure: AttemptFailure): void;
  /** A provider reported more than the worst case that was reserved: the truth is booked, and told. In pico-dollars. */
  overReservation(callId: string, cost: bigint, reserved: bigint): void;
  /** Work that may have kept the serving thread has just ended; it began at `startedAt`, by `performance.now()`. */
  ran(what: string, startedAt: number, bytes?: number): void;
  /** True while the event loop is more than 200 ms late, and for a second after it was. */
  isLate(): boolean;
  /** Writes from now on what is at least as severe; a log that was silent at the start stays so. */
  setLevel(level: TelemetryOptions['level']): void;
  info(message: string, fields?: Record<string, unknown>): void;
  warn(message: string, fields?: Record<string, unknown>): void;
  /** Resolves when all that was logged has been handed to the system. */
  close(): Promise<void>;
}

/**
 * The chain of causes as text, bounded, so that nobody's text fills the log. A syntax error quotes what it could not read, which may
 * be a prompt: of that one the message is left out.
 */
export function errorText(error: unknown, depth = 4): string {
  if (!(error instanceof Error)) return String(error).slice(0, 2000);
  const cause = error.cause === undefined || depth === 0 ? '' : ` <- ${errorText(error.cause, depth - 1)}`;
  const stack = error.stack ?? error.message;
  const text = error instanceof SyntaxError ? stack.replace(error.message, '(what it quotes is not logged)') : stack;
  return `${text.slice(0, 4000)}${cause}`;
}

/** Lines of the access log that are written at once, if a second does not pass before: a write takes as long as twenty lines. */
const WRITTEN_AT_ONCE = 100;

/** Bytes of log that wait at most; what comes while the system takes none is dropped. */
const MAX_WAITING = 16 * 1024 * 1024;

/** Opened here and now, so that a path that cannot be written keeps the process from starting. @throws ConfigError */
function openLog(file: string): number {
  try {
    makeFolders(path.dirname(file));
    return openSync(file, 'a');
  } catch (error) {
    throw new ConfigError(
      `ACCESS_LOG: cannot write ${file}: ${error instanceof Error ? error.message : String(error)}.`,
    );
  }
}

/** As Pino writes it, without the object that Pino would make of it: one JSON text for each request. */
const accessLine = (record: AccessRecord): string =>
  `{"level":30,"time":"${new Date().toISOString()}",${JSON.stringify(record).slice(1, -1)},"msg":"request"}\n`;

/** Buffered, written behind: the log must not slow the calls that it is about, and its failure (disk full) must not end them. */
function destination(target: string): LogStream {
  const stream = pino.destination({
    dest: target === 'stdout' ? 1 : openLog(target),
    sync: false,
    minLength: 8192,
    maxLength: MAX_WAITING,
  });
  // Pino's own listener would take the stream's methods away when a pipe breaks, and it could never be closed.
  stream.removeAllListeners('error');
  stream.once('error', (error: Error) => {
    process.stderr.write(`portcullis: the log cannot be written to ${target}: ${error.message}\n`);
    stream.on('error', () => undefined);
  });
  return stream;
}

export function createTelemetry(options: TelemetryOptions): Telemetry {
  const streams = new Map<string, LogStream>();
  const streamTo = (target: string): LogStream | undefined =>
    target === 'off' || options.level === 'silent' ? undefined : getOrMake(streams, target, () => destination(target));
  const { requestEnded, attemptEnded, overReserved, loopDelayed, ...metrics } = createMetrics();
  const stdout = streamTo('stdout');
  const log = pino({ base: null, level: options.level, timestamp: pino.stdTimeFunctions.isoTime }, stdout);
  const accessStream = streamTo(options.accessLog);
  let accessLines: string[] = [];
  const writeAccessLines = (): void => {
    if (accessLines.length > 0) accessStream?.write(accessLines.join(''));
    accessLines = [];
  };
  // Buffered lines reach a quiet terminal within a second.
  const flushing = setInterval(() => {
    writeAccessLines();
    for (const stream of streams.values()) stream.flush();
  }, 1000).unref();
  let loop: EventLoop | undefined;

  return {
    ...metrics,
    watch: (watched) => {
      metrics.watch(watched);
      loop = new EventLoop({
        onDelay: (delayMs) => loopDelayed(delayMs / 1000),
        onLate: (delayMs, ran) => log.warn({ delayMs, ran }, 'the event loop was late: what ran kept everyone waiting'),
      });
    },
    ran: (what, startedAt, bytes) => loop?.ran(what, startedAt, bytes),
    isLate: () => loop?.isLate() ?? false,
    policyEvaluated: (durationMs) => {
      metrics.policyEvaluated(durationMs);
      loop?.lasted('evaluating the policy', durationMs);
    },
    committed: (durationMs) => {
      metrics.committed(durationMs);
      loop?.lasted('a commit', durationMs);
    },
    access: (record, route) => {
      if (accessStream !== undefined) accessLines.push(accessLine(record));
      if (accessLines.length >= WRITTEN_AT_ONCE) writeAccessLines();
      requestEnded(route, record.status, record.code);
    },
    failure: (requestId, error) => log.error({ requestId, error: errorText(error) }, 'failure'),
    providerChecked: (provider, source, failure) => {
      metrics.providerChecked(provider, failure?.cause ?? 'works');
      if (failure === undefined) return;
      const { cause, explanation, isUnreached } = failure;
      const fields = { provider, variable: source, cause };
      // An operator who runs offline knows it.
      if (isUnreached) log.info(fields, `${source} could not be checked: ${explanation}`);
      else log.warn(fields, `${source} does not work: ${explanation}`);
    },
    attemptSucceeded: (target) => attemptEnded(target, 'none'),
    attemptFailed: (callId, mapping, { errorType, detail, said }) => {
      log.warn({ callId, mapping: mapping.id, errorType, detail }, 'attempt failed');
      log.debug({ callId, said }, 'the provider said');
      attemptEnded(mapping, errorType);
    },
    recovered: (calls) => {
      metrics.recovered(calls);
      if (calls > 0) log.warn({ calls }, 'settled the calls that a crash left open');
    },
    decisionsFiled: (decisions) => {
      metrics.decisionsFiled(decisions);
      const { dropped } = decisions;
      if (dropped > 0) log.warn({ dropped }, 'decisions were left out of DECISION_LOG_FILE, which was too far behind');
    },
    overReservation: (callId, cost, reserved) => {
      const amounts = { cost: formatUsd(cost), reserved: formatUsd(reserved) };
      log.warn({ callId, ...amounts }, 'a call cost more than was reserved for it');
      overReserved();
    },
    setLevel: (level) => {
      log.level = level;
    },
    info: (message, fields = {}) => log.info(fields, message),
    warn: (message, fields = {}) => log.warn(fields, message),
    async close() {
      clearInterval(flushing);
      loop?.close();
      writeAccessLines();
      await Promise.all(
        [...streams.values()].map(
          (stream) =>
            new Promise<void>((resolve) => {
              stream.on('close', resolve);
              stream.on('error', () => stream.destroy()); // what could not be written is lost
              stream.end();
            }),
        ),
      );
    },
  };
}

/** A piece of work that kept the serving thread. */
export interface Section {
  readonly what: string;
  readonly ms: number;
  /** Size of its input in bytes, if it has one. */
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
  /** Reports a timer's delay, in milliseconds; many times a second. */
  onDelay(delayMs: number): void;
  /** Reports a timer that came more than 200 ms late, with the work known to have run. */
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
