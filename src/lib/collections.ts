/** The value of a key; made, and kept, when it is first asked for. */
export function getOrMake<Key, Value>(
  map: { get(key: Key): Value | undefined; set(key: Key, value: Value): unknown },
  key: Key,
  make: () => Value,
): Value {
  const known = map.get(key);
  if (known !== undefined) return known;
  const value = make();
  map.set(key, value);
  return value;
}

/** Freezes a value and all that it holds, but for buffers, which cannot be frozen. */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Buffer.isBuffer(value)) return value;
  for (const each of Array.isArray(value) ? value : Object.values(value)) deepFreeze(each);
  return Object.freeze(value);
}

/** Things to undo, last first. */
export class Closers {
  readonly #closers: (() => void | Promise<void>)[] = [];

  add(close: () => void | Promise<void>): void {
    this.#closers.push(close);
  }

  /** Undoes all of them, whatever one of them throws; then throws the first of that. */
  async close(): Promise<void> {
    const faults: unknown[] = [];
    for (const close of this.#closers.splice(0).reverse()) {
      try {
        await close();
      } catch (fault) {
        faults.push(fault);
      }
    }
    if (faults.length > 0) throw faults[0];
  }
}

/** A count for each combination of labels, one level for each label. To count makes no text and, but for new ones, no object. */
export class Tally {
  count = 0;
  /** Also while nothing is counted. */
  isShown = false;
  readonly #byLabel = new Map<string, Tally>();

  /** The tally of what has this label, on the level below. */
  of(label: string): Tally {
    let tally = this.#byLabel.get(label);
    if (tally === undefined) {
      tally = new Tally();
      this.#byLabel.set(label, tally);
    }
    return tally;
  }

  /** Each combination that was counted or is shown, outermost label first, with its count. */
  *counts(): Generator<readonly [labels: readonly string[], count: number]> {
    if (this.count > 0 || this.isShown) yield [[], this.count];
    for (const [label, tally] of this.#byLabel) {
      for (const [labels, count] of tally.counts()) yield [[label, ...labels], count];
    }
  }
}

/** Entries that follow each other in a list, and the place of the first. */
export interface ListRun {
  readonly at: number;
  readonly entries: readonly string[];
}

/**
 * Entries that a list lost, by places in the list before, and gained, by places in the list after. The rest is in both, in one
 * order.
 */
export interface ListChange {
  readonly removed: readonly ListRun[];
  readonly added: readonly ListRun[];
}

/** The smallest change that makes one list of another, where no entry repeats. */
export function listChange(before: readonly string[], after: readonly string[]): ListChange {
  const places = new Map<string, number[]>();
  for (const [place, entry] of before.entries()) places.set(entry, [...(places.get(entry) ?? []), place]);
  const matched: Match[] = [];
  for (const [to, entry] of after.entries()) {
    const from = places.get(entry)?.shift();
    if (from !== undefined) matched.push({ from, to });
  }
  const kept = inOrder(matched);
  return {
    removed: runsWithout(before, new Set(kept.map(({ from }) => from))),
    added: runsWithout(after, new Set(kept.map(({ to }) => to))),
  };
}

/** An entry that is in both lists. */
interface Match {
  readonly from: number;
  readonly to: number;
}

/** The most matches that follow each other in both lists: the longest rising sequence of `from`. */
function inOrder(matches: readonly Match[]): Match[] {
  interface Step extends Match {
    readonly before: Step | undefined;
  }
  /** By its length less one: the sequence of that length which ends lowest, by its last step. */
  const ends: Step[] = [];
  for (const match of matches) {
    let low = 0;
    let high = ends.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((ends[middle]?.from ?? 0) < match.from) low = middle + 1;
      else high = middle;
    }
    ends[low] = { ...match, before: ends[low - 1] };
  }
  const longest: Match[] = [];
  for (let step = ends.at(-1); step !== undefined; step = step.before) longest.push(step);
  return longest;
}

function runsWithout(list: readonly string[], kept: ReadonlySet<number>): ListRun[] {
  const runs: { at: number; entries: string[] }[] = [];
  for (const [place, entry] of list.entries()) {
    if (kept.has(place)) continue;
    const last = runs.at(-1);
    if (last !== undefined && last.at + last.entries.length === place) last.entries.push(entry);
    else runs.push({ at: place, entries: [entry] });
  }
  return runs;
}

/** Shows a value that may be missing: null where it is. */
export const optional = <T, U>(value: T | null | undefined, show: (value: T) => U): U | null =>
  value === null || value === undefined ? null : show(value);
