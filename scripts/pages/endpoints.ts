import { COMMON, type Listener, type Operation } from '../../src/http/operations/operation.ts';
import type { TitledSchema } from '../../src/lib/schemas.ts';
import { code, lines, sections, table } from './markdown.ts';

const KEYS: Readonly<Record<NonNullable<Operation['key']>, string>> = {
  gateway: 'gateway key',
  optional: 'key, optional',
  master: 'master key',
  metrics: '`METRICS_TOKEN`, or from this machine',
};

const HEAD = ['Endpoint', 'With', 'What it does'];

const named = (what: string, names: object): string => {
  const all = Object.keys(names).map(code);
  return all.length === 0 ? '' : `${what}: ${all.join(', ')}`;
};

/** @param body the fields of the request */
function row({ method, path, key, summary, description, query, querySchema, headers }: Operation, body = {}): string[] {
  return [
    code(`${method.toUpperCase()} ${path}`),
    key === undefined ? '' : KEYS[key],
    lines(
      `${summary}. ${description ?? ''}`.trimEnd(),
      named('Query', query ?? querySchema?.properties ?? {}),
      named('Headers', headers ?? {}),
      named('Body', body),
    ),
  ];
}

/** One table. The bodies are OpenAI's. */
export const gatewayTable = (listener: Listener): string =>
  table(
    HEAD,
    [...listener.operations, ...COMMON].map((operation) => row(operation)),
  );

/** A table for each tag, with the fields of bodies. */
export function managementTables({ tags, operations }: Listener, schemas: readonly TitledSchema[]): string {
  const bodies = new Map(schemas.map(({ title, schema }) => [title, schema.properties ?? {}]));
  const all: readonly Operation[] = [...operations, ...COMMON];
  return sections(
    Object.entries(tags).map(([tag, description]) => {
      const own = all.filter((operation) => operation.tag === tag);
      return [
        tag,
        `${description}\n\n${table(
          HEAD,
          own.map((each) => row(each, bodies.get(each.request ?? '') ?? {})),
        )}`,
      ];
    }),
  );
}
