import type Router from '@koa/router';
import { entryOf } from '../lib/text.ts';
import type { Operation } from './operations/operation.ts';
import type { AppMiddleware, RequestState } from './state.ts';

/** The last steps of operations, by their ids. */
export type Handlers<Id extends string> = Readonly<Record<Id, AppMiddleware | readonly AppMiddleware[]>>;

/** As the router writes a path: `{id}` is `:id`, or `*id` where its value may hold `/`. */
const routePath = ({ path, isOpenEnded = false }: Operation): string =>
  path.replaceAll(/\{(\w+)\}/g, isOpenEnded ? '*$1' : ':$1');

/**
 * Puts the route of each operation, from the same table that makes the OpenAPI document.
 * @param handlers of all of them: one that is missing or misspelt does not compile
 * @param stepsBefore of an operation, before its handler
 */
export function register<Id extends string>(
  router: Router<RequestState>,
  operations: readonly Operation<Id>[],
  handlers: Handlers<Id>,
  stepsBefore: (operation: Operation) => readonly AppMiddleware[] = () => [],
): void {
  for (const operation of operations) {
    const handler = entryOf(handlers, operation.id);
    if (handler === undefined) throw new Error(`The operation ${operation.id} has no handler.`);
    router[operation.method](routePath(operation), ...stepsBefore(operation), ...[handler].flat());
  }
}
