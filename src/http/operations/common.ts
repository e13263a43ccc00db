import { json, type Operation } from './operation.ts';

/** What both listeners have. */
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
