import type { TitledSchema } from '../schema-set.ts';
import type { Listener } from './operation.ts';

/** The query parameters of each route that has some, as a module: `GET /v1/master/keys/:id` to their names. */
export function queryNamesModule({ operations }: Listener, schemas: readonly TitledSchema[]): string {
  const routes = operations.flatMap(({ method, path, query }): [string, string[]][] => {
    if (query === undefined) return [];
    const parameters = typeof query === 'string' ? propertiesOf(query, schemas) : query;
    return [[`${method.toUpperCase()} ${path.replaceAll(/\{(\w+)\}/g, ':$1')}`, Object.keys(parameters)]];
  });
  return `/** By method and route, as the router has it. Other routes take no query. */
export const QUERY_NAMES: ReadonlyMap<string, readonly string[]> = new Map(${JSON.stringify(routes)});
`;
}

function propertiesOf(title: string, schemas: readonly TitledSchema[]): object {
  const properties = schemas.find((each) => each.title === title)?.schema.properties;
  if (typeof properties !== 'object' || properties === null) throw new Error(`${title} has no properties.`);
  return properties;
}
