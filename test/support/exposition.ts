import type { TestGateway } from './gateway.ts';
import { send } from './request.ts';

/** One line of the exposition: a value with its labels. */
export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** One metric with all its samples; those of a histogram have its name and an ending. */
export interface Family {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly samples: readonly Sample[];
}

const SAMPLE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\["\\n])*)"(?:,|$)/y;

function labelsOf(text: string): Record<string, string> {
  const labels: Record<string, string> = {};
  LABEL.lastIndex = 0;
  while (LABEL.lastIndex < text.length) {
    const [, name = '', value = ''] = LABEL.exec(text) ?? [];
    if (name === '') throw new Error(`no labels: ${text}`);
    labels[name] = value;
  }
  return labels;
}

function sampleOf(line: string): Sample {
  const [, name, labels = '', value] = SAMPLE.exec(line) ?? [];
  // Any case of it is understood there.
  if (name === undefined || value === undefined || (Number.isNaN(Number(value)) && !/^nan$/i.test(value))) {
    throw new Error(`no sample: ${line}`);
  }
  return { name, labels: labelsOf(labels), value: Number(value) };
}

/** Reads Prometheus' text format (version 0.0.4), every line of it; what is not well formed is an error. */
export function familiesOf(text: string): Family[] {
  const families: (Family & { samples: Sample[] })[] = [];
  for (const line of text.split('\n').filter((each) => each !== '')) {
    const [, help] = /^# HELP \S+ (.+)$/.exec(line) ?? [];
    const [, name = '', type = ''] = /^# TYPE (\S+) (counter|gauge|histogram)$/.exec(line) ?? [];
    const last = families.at(-1);
    if (help !== undefined) {
      families.push({ name: line.split(' ')[2] ?? '', type: '', help, samples: [] });
    } else if (type !== '') {
      if (last?.name !== name) throw new Error(`a type without its help: ${line}`);
      families.splice(-1, 1, { ...last, type });
    } else {
      const sample = sampleOf(line);
      const base = last?.type === 'histogram' ? sample.name.replace(/_(bucket|sum|count)$/, '') : sample.name;
      if (last === undefined || last.name !== base) throw new Error(`a sample out of place: ${line}`);
      last.samples.push(sample);
    }
  }
  return families;
}

/** What the gateway tells of itself now. */
export async function metricsOf({ management }: Pick<TestGateway, 'management'>): Promise<Family[]> {
  const { status, text } = await send(management, { path: '/metrics' });
  if (status !== 200) throw new Error(`no metrics: ${status} ${text}`);
  return familiesOf(text);
}

/** The samples of one metric, as pairs of labels (their values joined by blanks) and value; of a histogram how many were observed. */
export function valuesOf(families: readonly Family[], name: string): Record<string, number> {
  const found = families.find((family) => family.name === `portcullis_${name}`);
  if (found === undefined) throw new Error(`no metric ${name}`);
  const samples =
    found.type === 'histogram' ? found.samples.filter((each) => each.name.endsWith('_count')) : found.samples;
  return Object.fromEntries(samples.map(({ labels, value }) => [Object.values(labels).join(' '), value]));
}
