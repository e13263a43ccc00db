/**
 * An operation of one of the listeners: it makes the route and its entry in the OpenAPI document. Bodies are named by the titles of
 * schemas/.
 */
export interface Operation<Id extends string = string> {
  readonly method: 'get' | 'post' | 'patch' | 'delete';
  /** With `{name}` for each part that varies. */
  readonly path: string;
  /** The part that varies may hold `/`. */
  readonly isOpenEnded?: boolean;
  /** Its name in code, where its handler has it too, and for programs. */
  readonly id: Id;
  readonly tag: string;
  readonly summary: string;
  readonly description?: string;
  /** Which key it asks for; absent: none. `optional`: a gateway key may be sent. */
  readonly key?: 'gateway' | 'optional' | 'master' | 'metrics';
  /** Query parameters, each with what it means; the master API refuses all others. */
  readonly query?: Readonly<Record<string, QueryParameter>>;
  /** The same by a schema, whose properties they are. */
  readonly querySchema?: { readonly title: string; readonly properties: object };
  readonly headers?: Readonly<Record<string, string>>;
  /** Title of the body's schema. */
  readonly request?: string;
  readonly answer: Answer;
  /** Statuses of refusals, each with the error envelope. */
  readonly errors: readonly number[];
}

export interface QueryParameter {
  readonly description: string;
  readonly type: 'string' | 'boolean' | 'integer';
}

export interface Answer {
  readonly status: 200 | 201;
  readonly description: string;
  /** Media type to the title of its schema, or to `text`. */
  readonly content: Readonly<Record<string, string>>;
}

export interface Listener {
  readonly title: string;
  readonly description: string;
  readonly tags: Readonly<Record<string, string>>;
  readonly operations: readonly Operation[];
}

export const json = (title: string, description: string, status: 200 | 201 = 200): Answer => ({
  status,
  description,
  content: { 'application/json': title },
});
