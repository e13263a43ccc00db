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
  /** Query parameters as the properties of a schema. */
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

/** Operations of both listeners. */
export const COMMON = [
  {
    method: 'get',
    path: '/health',
    id: 'getHealth',
    tag: 'Operation',
    summary: 'The process lives',
    answer: json('Health', 'It does.'),
    errors: [],
  },
  {
    method: 'get',
    path: '/ready',
    id: 'getReadiness',
    tag: 'Operation',
    summary: 'It takes calls',
    description: 'With status 503, and the reason, when it does not.',
    answer: json('Readiness', 'It does.'),
    errors: [],
  },
  {
    method: 'get',
    path: '/openapi.json',
    id: 'getOpenApi',
    tag: 'Operation',
    summary: 'This API for programs, made from the schemas',
    answer: json('OpenApiDocument', 'OpenAPI 3.1.'),
    errors: [],
  },
  {
    method: 'get',
    path: '/reference',
    id: 'getReference',
    tag: 'Operation',
    summary: 'This API as a page',
    answer: { status: 200, description: 'A page that needs nothing else.', content: { 'text/html': 'text' } },
    errors: [],
  },
] as const satisfies readonly Operation[];

export type CommonId = (typeof COMMON)[number]['id'];
