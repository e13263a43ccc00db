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
