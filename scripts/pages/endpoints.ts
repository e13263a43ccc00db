import { COMMON, type Listener, type Operation } from '../../src/http/operations/operation.ts';
import { code, sections, table } from './markdown.ts';

const KEYS: Readonly<Record<NonNullable<Operation['key']>, string>> = {
  gateway: 'gateway key',
  optional: 'key, optional',
  master: 'master key',
  metrics: '`METRICS_TOKEN`, or from this machine',
};

const HEAD = ['Endpoint', 'With', 'What it does'];

/** One line an operation: `/reference` describes the rest. */
const row = ({ method, path, key, summary }: Operation): string[] => [
  code(`${method.toUpperCase()} ${path}`),
  key === undefined ? '' : KEYS[key],
  `${summary}.`,
];

export const gatewayTable = (listener: Listener): string => table(HEAD, [...listener.operations, ...COMMON].map(row));

/** A table for each tag. */
export function managementTables({ tags, operations }: Listener): string {
  const all: readonly Operation[] = [...operations, ...COMMON];
  return sections(
    Object.entries(tags).map(([tag, description]) => [
      tag,
      `${description}\n\n${table(HEAD, all.filter((operation) => operation.tag === tag).map(row))}`,
    ]),
  );
}
