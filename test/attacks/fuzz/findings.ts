// What was found broken, told once for each kind, with what was sent in a file.
import { mkdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

/** What is kept of a step while it runs, so that it can be shown. */
export interface StepRecord {
  readonly step: number;
  readonly generator: string;
  /** Requests and pieces of them, in order, as they were sent. */
  readonly sent: (string | Buffer)[];
}

export interface Finding {
  readonly invariant: string;
  readonly generator: string;
  readonly steps: number[];
  readonly details: string[];
  readonly files: string[];
  times: number;
}

/** Of each kind of finding. */
const KEPT = 3;

export class Findings {
  readonly #found = new Map<string, Finding>();
  readonly #folder: string;

  constructor(seed: number) {
    this.#folder = path.join(tmpdir(), `portcullis-attack-${seed}`);
  }

  get count(): number {
    return this.#found.size;
  }

  /** @param records the step that broke it, or those that ran at the time */
  report(invariant: string, detail: string, ...records: readonly StepRecord[]): void {
    const generator = records.length === 1 ? (records[0]?.generator ?? '') : 'several';
    const id = `${invariant} ${generator}`;
    const finding = this.#found.get(id) ?? { invariant, generator, steps: [], details: [], files: [], times: 0 };
    this.#found.set(id, finding);
    finding.times += 1;
    if (finding.times > KEPT) return;
    finding.details.push(detail.slice(0, 600));
    finding.steps.push(...records.map(({ step }) => step));
    finding.files.push(this.#save(finding, detail, records));
  }

  #save({ invariant, times }: Finding, detail: string, records: readonly StepRecord[]): string {
    mkdirSync(this.#folder, { recursive: true });
    const name = invariant.replace(/[^a-z0-9]+/gi, '-').slice(0, 60);
    const file = path.join(
      this.#folder,
      `${name}-${records
        .map(({ step }) => step)
        .slice(0, 5)
        .join('+')}-${times}.txt`,
    );
    const parts: (string | Buffer)[] = [`${invariant}: ${detail}\n`];
    for (const { step, generator, sent } of records) {
      parts.push(`\n===== step ${step}, ${generator}\n`);
      for (const piece of sent) parts.push(piece);
    }
    writeFileSync(file, Buffer.concat(parts.map((part) => Buffer.from(part))), { mode: 0o600 });
    return file;
  }

  /** As text for people; empty when nothing was found. */
  summary(seed: number): string {
    return [...this.#found.values()]
      .map(({ invariant, generator, steps, details, files, times }) =>
        [
          `BROKEN (${times} times): ${invariant}`,
          `  by ${generator}; seed ${seed}, steps ${[...new Set(steps)].slice(0, 30).join(', ')}`,
          ...details.map((detail) => `  ${detail}`),
          ...files.map((file) => `  sent: ${file}`),
        ].join('\n'),
      )
      .join('\n');
  }
}
