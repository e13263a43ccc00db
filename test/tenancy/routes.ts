// What the management app serves, and where in it identifiers stand. A route that is new is met by itself; what is not known
// of it is named.
import Router from '@koa/router';
import type { createManagementApp } from '../../src/http/management-app.ts';
import type { IdentifierKind } from './organizations.ts';

export interface Route {
  readonly method: string;
  /** As it is registered: `/v1/master/keys/:id`. */
  readonly path: string;
}

export const nameOf = ({ method, path }: Route): string => `${method} ${path}`;

/** Routes that need no master key: health, readiness and the like, and the one whose body holds the token of an invitation. */
const isOpen = ({ path }: Route): boolean => !path.startsWith('/v1/') || path === '/v1/master/invitations/accept';

/** Every route that needs a master key, read from the router's stack. */
export function tenantRoutes(app: ReturnType<typeof createManagementApp>): Route[] {
  const routers = app.middleware.flatMap((step) => {
    const router: unknown = Reflect.get(step, 'router');
    return router instanceof Router ? [router] : [];
  });
  const routes = routers.flatMap(({ stack }) =>
    stack.flatMap(({ methods, path }) =>
      methods.filter((method) => method !== 'HEAD').map((method) => ({ method, path: String(path) })),
    ),
  );
  return routes.filter((route) => !isOpen(route));
}

/** What an identifier in a path means, by the part of the path before it; rules by whose they are. */
const KIND_BY_SEGMENT: Readonly<Record<string, IdentifierKind>> = {
  'master/keys': 'key',
  'keys/:id/iam': 'keyRule',
  'members/:member/iam': 'memberRule',
  'groups/:id/iam': 'groupRule',
  'organization/iam': 'organizationRule',
  'master/groups': 'group',
  'master/members': 'member',
  'master/projects': 'project',
  'master/invitations': 'invitation',
  'master/master-keys': 'masterKey',
  'master/platform-keys': 'platformKey',
  'master/provider-keys': 'providerKey',
  'master/custom-providers': 'customProvider',
  'master/custom-models': 'customModel',
  'master/tag-sets': 'tagSet',
  'master/aliases': 'alias',
  'master/calls': 'call',
  'master/decisions': 'decision',
  'master/requests': 'refusedRequest',
};

export interface PathIdentifier {
  /** `:id` */
  readonly parameter: string;
  readonly kind: IdentifierKind;
}

/** The identifiers in a route's path. @throws Error naming the route of whose identifier nothing is known */
export function pathIdentifiers(route: Route): PathIdentifier[] {
  const segments = route.path.split('/');
  return segments.flatMap((parameter, index) => {
    if (!parameter.startsWith(':')) return [];
    const before = segments.slice(0, index).join('/');
    const known = Object.keys(KIND_BY_SEGMENT).find((end) => before.endsWith(`/${end}`));
    const kind = known === undefined ? undefined : KIND_BY_SEGMENT[known];
    if (kind === undefined) {
      throw new Error(
        `${nameOf(route)}: what ${parameter} identifies is not known; say it in ${import.meta.filename}.`,
      );
    }
    return [{ parameter, kind }];
  });
}

/** Gives the identifier of one kind for the place where it is called. */
export type Choose = (kind: IdentifierKind) => string;

const MODEL_RULE = { ruleType: 'deny_models', ruleValue: { models: ['sandbox-slow'] } };

const folder = (choose: Choose): object => ({
  organization: { rules: { first: MODEL_RULE } },
  groups: { [choose('groupReference')]: { rules: { first: MODEL_RULE } } },
  members: { [choose('member')]: { rules: { first: MODEL_RULE } } },
  keys: { [choose('keyReference')]: { rules: { first: MODEL_RULE } } },
});

/** A body that each route that takes one accepts, with every identifier that may stand in it. */
const BODIES: Readonly<Record<string, (choose: Choose) => object>> = {
  'POST /v1/master/keys': (choose) => ({ projectId: choose('project'), createdBy: choose('member') }),
  'PATCH /v1/master/keys/:id': () => ({ description: 'Changed' }),
  'POST /v1/master/keys/:id/iam': () => MODEL_RULE,
  'PATCH /v1/master/keys/:id/iam/:ruleId': () => ({ description: 'Changed' }),
  'POST /v1/master/members/:member/iam': () => MODEL_RULE,
  'PATCH /v1/master/members/:member/iam/:ruleId': () => ({ description: 'Changed' }),
  'POST /v1/master/groups': () => ({ name: 'another-group' }),
  'PATCH /v1/master/groups/:id': (choose) => ({ addMembers: [choose('member')], addKeys: [choose('key')] }),
  'POST /v1/master/groups/:id/iam': () => MODEL_RULE,
  'PATCH /v1/master/groups/:id/iam/:ruleId': () => ({ description: 'Changed' }),
  'POST /v1/master/organization/iam': () => MODEL_RULE,
  'PATCH /v1/master/organization/iam/:ruleId': () => ({ description: 'Changed' }),
  'PATCH /v1/master/members/:member/budget': () => ({ usageLimit: '5' }),
  'PATCH /v1/master/projects/:id/budget': () => ({ usageLimit: '5' }),
  'PATCH /v1/master/organization/budget': () => ({ usageLimit: '5' }),
  'PATCH /v1/master/organization': () => ({ name: 'Changed' }),
  'POST /v1/master/projects': () => ({ name: 'New' }),
  'PATCH /v1/master/projects/:id': () => ({ name: 'Changed' }),
  'PATCH /v1/master/members/:member': () => ({ name: 'Changed' }),
  'POST /v1/master/invitations': () => ({ email: 'new@example.com', role: 'developer' }),
  'POST /v1/master/master-keys': () => ({ description: 'New' }),
  'PATCH /v1/master/master-keys/:id': () => ({ description: 'Changed' }),
  'POST /v1/master/platform-keys': (choose) => ({ projectId: choose('project'), createdBy: choose('member') }),
  'PATCH /v1/master/platform-keys/:id': () => ({ description: 'Changed' }),
  'POST /v1/master/provider-keys': (choose) => ({
    provider: 'openai',
    label: 'New',
    token: 'sk-the-very-secret-0123456789-tail',
    projectId: choose('project'),
  }),
  'PATCH /v1/master/provider-keys/:id': (choose) => ({ label: 'Changed', projectId: choose('project') }),
  'POST /v1/master/custom-providers': () => ({ name: 'another', baseUrl: 'https://models.example/v1' }),
  'PATCH /v1/master/custom-providers/:id': () => ({ keyless: true }),
  'POST /v1/master/custom-models': (choose) => ({ customProviderId: choose('customProvider'), model: 'another' }),
  'PATCH /v1/master/custom-models/:id': () => ({ displayName: 'Changed' }),
  'POST /v1/master/tag-sets': () => ({ target: 'sandbox-free', tags: ['new'] }),
  'PATCH /v1/master/tag-sets/:id': () => ({ tags: ['changed'] }),
  'POST /v1/master/aliases': (choose) => ({ name: 'new', projectId: choose('project'), models: ['sandbox-free'] }),
  'PATCH /v1/master/aliases/:id': () => ({ models: ['sandbox-paid'] }),
  'POST /v1/master/policy/evaluate': (choose) => ({
    key: choose('key'),
    rules: [
      { ...MODEL_RULE, key: choose('keyReference') },
      { ...MODEL_RULE, member: choose('member') },
      { ...MODEL_RULE, group: choose('groupReference') },
      { id: choose('keyRule'), remove: true },
      { id: choose('memberRule'), description: 'Changed' },
    ],
    request: { model: 'sandbox-free' },
  }),
  'POST /v1/master/policy/replay': (choose) => ({
    keyId: choose('key'),
    memberId: choose('member'),
    rules: [
      { ...MODEL_RULE, key: choose('keyReference') },
      { id: choose('memberRule'), remove: true },
    ],
  }),
  'POST /v1/master/policy/diff': (choose) => ({
    rules: [
      { ...MODEL_RULE, key: choose('keyReference') },
      { ...MODEL_RULE, member: choose('member') },
      { ...MODEL_RULE, group: choose('groupReference') },
      { id: choose('keyRule'), remove: true },
      { id: choose('organizationRule'), description: 'Changed' },
    ],
  }),
  'POST /v1/master/policy/plan': folder,
  'POST /v1/master/policy/apply': folder,
};

/** The body for a route; undefined for one that takes none. @throws Error naming the route whose body is not known */
export function bodyOf(route: Route): ((choose: Choose) => object) | undefined {
  if (route.method === 'GET' || route.method === 'DELETE') return undefined;
  const body = BODIES[nameOf(route)];
  if (body === undefined) {
    throw new Error(`${nameOf(route)}: no body is known that it accepts; write one in ${import.meta.filename}.`);
  }
  return body;
}

/** What the query parameters of each list identify; those that identify nothing (`limit`, `cursor`, ...) are left out. */
const QUERIES: Readonly<Record<string, Readonly<Record<string, IdentifierKind>>>> = {
  'GET /v1/master/keys': { projectId: 'project' },
  'GET /v1/master/groups': {},
  'GET /v1/master/organization': {},
  'GET /v1/master/organization/iam': {},
  'GET /v1/master/organization/budget': {},
  'GET /v1/master/budgets': {},
  'GET /v1/master/projects': {},
  'GET /v1/master/members': {},
  'GET /v1/master/invitations': {},
  'GET /v1/master/master-keys': {},
  'GET /v1/master/platform-keys': { projectId: 'project' },
  'GET /v1/master/provider-keys': {},
  'GET /v1/master/custom-providers': {},
  'GET /v1/master/custom-models': { customProviderId: 'customProvider' },
  'GET /v1/master/tag-sets': {},
  'GET /v1/master/aliases': { projectId: 'project' },
  'GET /v1/master/policy/bundle': {},
  'GET /v1/master/usage': { projectId: 'project', keyId: 'key', memberId: 'member' },
  'GET /v1/master/calls': { keyId: 'key', memberId: 'member', groupId: 'group' },
  'GET /v1/master/decisions': { keyId: 'key', memberId: 'member', groupId: 'group' },
  'GET /v1/master/requests': { keyId: 'key', memberId: 'member' },
  'GET /v1/master/audit': { targetId: 'key' },
};

/** What a route's query can identify. @throws Error naming the route of which that is not known */
function queryOf(route: Route): Readonly<Record<string, IdentifierKind>> {
  if (route.method !== 'GET' || route.path.includes(':')) return {};
  const query = QUERIES[nameOf(route)];
  if (query === undefined) {
    throw new Error(`${nameOf(route)}: what its query identifies is not known; say it in ${import.meta.filename}.`);
  }
  return query;
}

/** A place in a request in which an identifier stands. */
export interface Place {
  readonly where: 'path' | 'query' | 'body';
  readonly kind: IdentifierKind;
  /** For people: `path :id`, `body 2`. */
  readonly name: string;
}

/** Every place of a route's requests in which an identifier can stand: path first, then query, then body. */
export function placesOf(route: Route): Place[] {
  const places: Place[] = [
    ...pathIdentifiers(route).map(
      ({ parameter, kind }) => ({ where: 'path', kind, name: `path ${parameter}` }) as const,
    ),
    ...Object.entries(queryOf(route)).map(([name, kind]) => ({ where: 'query', kind, name: `query ${name}` }) as const),
  ];
  let inBody = 0;
  bodyOf(route)?.((kind) => {
    places.push({ where: 'body', kind, name: `body ${++inBody}` });
    return '';
  });
  return places;
}

export interface Target {
  readonly method: string;
  readonly path: string;
  readonly body?: object;
}

/** The request of a route with these values in its places, in the order of `placesOf`; undefined leaves a query parameter out. */
export function requestOf(route: Route, values: readonly (string | undefined)[]): Target {
  const places = placesOf(route);
  const valuesOf = (where: Place['where']) =>
    places.flatMap((place, index) => (place.where === where ? [{ place, value: values[index] }] : []));
  const inPath = valuesOf('path').map(({ value = '' }) => encodeURIComponent(value));
  const path = route.path.replaceAll(/:\w+/g, () => inPath.shift() ?? '');
  const query = valuesOf('query').flatMap(({ place, value }) =>
    value === undefined ? [] : [[place.name.replace('query ', ''), value]],
  );
  const inBody = valuesOf('body').map(({ value = '' }) => value);
  const body = bodyOf(route)?.(() => inBody.shift() ?? '');
  return {
    method: route.method,
    path: query.length === 0 ? path : `${path}?${new URLSearchParams(query)}`,
    ...(body === undefined ? {} : { body }),
  };
}
