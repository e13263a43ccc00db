import { LRUCache } from 'lru-cache';
import type { Clock } from '../../domain/time.ts';
import type { Target } from '../models/reach.ts';

/** Failures in a row after which a target rests, and for how long (src/core/README.md, "order"). */
const FAILURES = 3;
const REST_MS = 30_000;
const MAX_REMEMBERED = 10_000;
/** Of a target that has not failed, or has succeeded since. */
const FRESH = { failures: 0, restsUntil: 0 };

interface Record {
  failures: number;
  /** Epoch milliseconds. */
  restsUntil: number;
  /** One call is trying whether it has recovered; the others go on avoiding it. */
  probing: boolean;
}

/**
 * Which targets have failed recently. A mapping with another credential is another target: one customer's bad key must not make
 * everyone's provider rest. Kept in memory: a start begins with good faith.
 */
export class Health {
  readonly #clock: Clock;
  readonly #records = new LRUCache<string, Record>({ max: MAX_REMEMBERED });

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The same targets, those that rest last; else the order stays. */
  ordered(targets: readonly Target[]): Target[] {
    const resting = targets.filter((target) => this.#rests(target));
    return resting.length === 0 ? [...targets] : [...targets.filter((target) => !resting.includes(target)), ...resting];
  }

  /** Whether this attempt is the one that tries a target that has rested; to be followed by `ended`. */
  begun(target: Target): boolean {
    const record = this.#recordOf(target);
    if (record === undefined || record.failures < FAILURES || record.probing) return false;
    if (record.restsUntil > this.#clock.now()) return false;
    record.probing = true;
    return true;
  }

  /**
   * @param outcome undefined when the attempt says nothing about the target: its caller left, or asked for what cannot be done
   * @param retryAfterMs how long the target itself wants to rest: from now on, after the first failure too
   */
  ended(target: Target, wasProbe: boolean, outcome: 'succeeded' | 'failed' | undefined, retryAfterMs?: number): void {
    const record = this.#recordOf(target);
    if (record !== undefined && wasProbe) record.probing = false;
    if (outcome === 'succeeded') {
      if (record !== undefined) Object.assign(record, FRESH);
    } else if (outcome === 'failed') {
      const failed = record ?? { ...FRESH, probing: false };
      const now = this.#clock.now();
      failed.failures += 1;
      if (retryAfterMs !== undefined) {
        failed.failures = Math.max(FAILURES, failed.failures);
        failed.restsUntil = now + retryAfterMs;
      } else if (failed.failures >= FAILURES) {
        // What it has asked for stands: a failure that says nothing takes nothing from it.
        failed.restsUntil = Math.max(failed.restsUntil, now + REST_MS);
      }
      this.#records.set(keyOf(target), failed);
    }
  }

  /** How many targets rest now. */
  resting(): number {
    let resting = 0;
    for (const record of this.#records.values()) if (this.#isResting(record)) resting += 1;
    return resting;
  }

  /** As long as nothing has failed, no key is made to look for. */
  #recordOf(target: Target): Record | undefined {
    return this.#records.size === 0 ? undefined : this.#records.get(keyOf(target));
  }

  #rests(target: Target): boolean {
    const record = this.#recordOf(target);
    return record !== undefined && this.#isResting(record);
  }

  #isResting({ failures, probing, restsUntil }: Record): boolean {
    return failures >= FAILURES && (probing || restsUntil > this.#clock.now());
  }
}

/** Two organizations may have a provider of one name: its address tells them apart. */
const keyOf = ({ mapping, provider: { base }, credential }: Target): string =>
  `${mapping.id} ${mapping.revision ?? ''} ${base.origin}${base.path} ${credential.providerKeyId ?? credential.source}`;
