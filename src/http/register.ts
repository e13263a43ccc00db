import type Router from '@koa/router';
import type { Operation } from './operations/operation.ts';
import type { AppMiddleware, RequestState } from './state.ts';

/** The last steps of operations, by their ids. */
export type Handlers = Readonly<Record<string, AppMiddleware | readonly AppMiddleware[]>>;

/** As the router writes a path: `{id}` is `:id`, or `*id` where its value may hold `/`. */
const routePath = ({ path, isOpenEnded = false }: Operation): string =>
  path.replaceAll(/\{(\w+)\}/g, isOpenEnded ? '*$1' : ':$1');

/**
 * Puts the route of each operation, from the same table that makes the OpenAPI document.
 * @param stepsBefore of an operation, before its handler
 * @throws Error at the start when an operation has no handler, or a handler no operation
 */
export function register(
  router: Router<RequestState>,
  operations: readonly Operation[],
  handlers: Handlers,
  stepsBefore: (operation: Operation) => readonly AppMiddleware[] = () => [],
): void {
  for (const operation of operations) {
    const handler = handlers[operation.id];
    if (handler === undefined) throw new Error(`The operation ${operation.id} has no handler.`);
    router[operation.method](routePath(operation), ...stepsBefore(operation), ...[handler].flat());
  }
  const known = new Set(operations.map(({ id }) => id));
  const unknown = Object.keys(handlers).filter((id) => !known.has(id));
  if (unknown.length > 0) throw new Error(`No operation is called ${unknown.join(', ')}.`);
}
