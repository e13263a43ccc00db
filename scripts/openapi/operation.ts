/** An operation of one of the listeners, as the OpenAPI document describes it. Bodies are named by the titles of schemas/. */
export interface Operation {
  readonly method: 'get' | 'post' | 'patch' | 'delete';
  /** With `{name}` for each part that varies. */
  readonly path: string;
  readonly id: string;
  readonly tag: string;
  readonly summary: string;
  readonly description?: string;
  /** Which key it asks for; absent: none. `optional`: a gateway key may be sent. */
  readonly key?: 'gateway' | 'optional' | 'master' | 'metrics';
  /** Query parameters: the title of a schema whose properties they are, or each with what it means. */
  readonly query?: string | Readonly<Record<string, QueryParameter>>;
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

/** What both listeners have. */
export const COMMON: readonly Operation[] = [
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
    summary: 'This document',
    answer: json('OpenApiDocument', 'OpenAPI 3.1.'),
    errors: [],
  },
  {
    method: 'get',
    path: '/reference',
    id: 'getReference',
    tag: 'Operation',
    summary: 'This document as a page',
    answer: { status: 200, description: 'A page that needs nothing else.', content: { 'text/html': 'text' } },
    errors: [],
  },
];
