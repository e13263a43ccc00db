import { METRICS } from '../../src/telemetry/metrics.ts';
import { code, table } from './markdown.ts';

export const metricTable = (): string =>
  table(
    ['Metric', 'Type', 'Labels', 'What it tells'],
    Object.values(METRICS).map(({ name, type, labelNames, help }) => [
      code(name),
      type,
      labelNames.map(code).join(', '),
      help,
    ]),
  );
