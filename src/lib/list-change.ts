/** Entries that follow each other in a list, and the place of the first. */
export interface Run {
  readonly at: number;
  readonly entries: readonly string[];
}

/** What a list lost, by places in the list before, and gained, by places in the list after. The rest is in both, in one order. */
export interface ListChange {
  readonly removed: readonly Run[];
  readonly added: readonly Run[];
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

function runsWithout(list: readonly string[], kept: ReadonlySet<number>): Run[] {
  const runs: { at: number; entries: string[] }[] = [];
  for (const [place, entry] of list.entries()) {
    if (kept.has(place)) continue;
    const last = runs.at(-1);
    if (last !== undefined && last.at + last.entries.length === place) last.entries.push(entry);
    else runs.push({ at: place, entries: [entry] });
  }
  return runs;
}
