// Tenancy (src/admin/README.md, "tenancy"): something of another organization is 404, on every route of the management listener, in
// every place of a request, for every role, and nothing is changed.
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { dump, foreignTexts, KEY_KINDS, send, startOrganizations } from './organizations.ts';
import { nameOf, type Place, placesOf, type Route, requestOf, tenantRoutes } from './routes.ts';
import { CALLERS, type Choice, expectNotFound } from './walk.ts';

const organizations = await startOrganizations();
const { server, own } = organizations;
afterAll(() => server.close());

const routes = tenantRoutes(server.app);
const identifying = routes.filter((route) => placesOf(route).length > 0);
const ownValues = (places: readonly Place[], identifiers = own): string[] =>
  places.map(({ kind }) => identifiers[kind][0] ?? '');
const titled = (list: readonly Route[]) => list.map((route) => [nameOf(route), route] as const);

it('the routes are read from the router', () => {
  expect(routes.map(nameOf)).toEqual(
    expect.arrayContaining([
      'GET /v1/master/keys',
      'PATCH /v1/master/keys/:id/iam/:ruleId',
      'DELETE /v1/master/projects/:id',
    ]),
  );
  expect(identifying.length).toBeGreaterThan(30);
});

it('a route of which nothing is known fails by its name', () => {
  const unknown = { method: 'POST', path: '/v1/master/widgets' };
  expect(() => placesOf({ ...unknown, path: `${unknown.path}/:id` })).toThrow(
    'POST /v1/master/widgets/:id: what :id ident',
  );
  expect(() => placesOf(unknown)).toThrow('POST /v1/master/widgets: no body is known that it accepts');
  expect(() => placesOf({ ...unknown, method: 'GET' })).toThrow('GET /v1/master/widgets: what its query identifies');
});

describe('an identifier of another organization is as one that nobody has', () => {
  it.each(titled(identifying))('%s', async (_, route) => {
    const places = placesOf(route);
    for (const caller of CALLERS) {
      for (const [foreignPlace, { kind }] of places.entries()) {
        for (const form of organizations.foreign[kind].keys()) {
          const choices = places.map(
            (__, index): Choice => ({ whose: index === foreignPlace ? 'foreign' : 'own', form }),
          );
          await expectNotFound(organizations, route, caller, choices);
        }
      }
    }
  });

  it('in any places of a request at once', async () => {
    const choice = fc.record({ whose: fc.constantFrom('own' as const, 'foreign' as const), form: fc.nat(1) });
    const request = fc.constantFrom(...identifying).chain((route) => {
      const { length } = placesOf(route);
      const choices = fc.array(choice, { minLength: length, maxLength: length });
      return fc.record({
        route: fc.constant(route),
        caller: fc.constantFrom(...CALLERS),
        choices: choices.filter((list) => list.some(({ whose }) => whose === 'foreign')),
      });
    });
    await fc.assert(
      fc.asyncProperty(request, ({ route, caller, choices }) => expectNotFound(organizations, route, caller, choices)),
      { numRuns: 200 },
    );
  });
});

describe('a key of another member is to a developer as one that nobody has', () => {
  const isKey = ({ kind }: Place): boolean => KEY_KINDS.includes(kind);

  it.each(titled(identifying.filter((route) => placesOf(route).some(isKey))))('%s', async (_, route) => {
    const places = placesOf(route);
    for (const [foreignPlace, place] of places.entries()) {
      if (!isKey(place)) continue;
      for (const form of organizations.ofOwner[place.kind].keys()) {
        const choices = places.map(
          (__, index): Choice => ({ whose: index === foreignPlace ? 'foreign' : 'own', form }),
        );
        await expectNotFound({ ...organizations, foreign: organizations.ofOwner }, route, 'developer', choices);
      }
    }
  });
});

describe('the same request with what is its own is served, so that only the identifier was at fault', () => {
  it.each(titled(identifying))('%s', async (_, route) => {
    const fresh = await startOrganizations();
    try {
      const target = requestOf(route, ownValues(placesOf(route), fresh.own));
      const answer = await send(fresh, fresh.server.tokens.owner, target);
      expect({ status: answer.status, ...(answer.status < 300 ? {} : { text: answer.text }) }).toEqual({
        status: expect.toSatisfy((status: number) => status === 200 || status === 201),
      });
    } finally {
      await fresh.server.close();
    }
  });
});

describe('no answer holds anything of another organization', () => {
  let texts: readonly string[];
  beforeAll(async () => {
    texts = await foreignTexts(organizations);
  });

  it.each(titled(routes.filter(({ method }) => method === 'GET')))('%s', async (_, route) => {
    expect(texts).toContain('foreigner@example.com');
    const places = placesOf(route);
    const cursors = Object.values(organizations.foreign)
      .flat()
      .map((id) => Buffer.from(id, 'latin1').toString('base64url'));
    for (const caller of CALLERS) {
      const { method, path: target } = requestOf(
        route,
        places.map(({ where, kind }) => (where === 'query' ? undefined : own[kind][0])),
      );
      for (const query of ['', ...cursors.map((cursor) => `?cursor=${cursor}`)]) {
        const { text } = await send(organizations, server.tokens[caller], { method, path: `${target}${query}` });
        expect(texts.filter((foreign) => text.includes(foreign))).toEqual([]);
      }
    }
  });
});

it('every route asks for a master key before anything else', async () => {
  const before = await dump(organizations);
  for (const route of routes) {
    const { method, path: target, body } = requestOf(route, ownValues(placesOf(route)));
    const { status } = await server.request(method, target, { token: null, body });
    expect([nameOf(route), status]).toEqual([nameOf(route), 401]);
  }
  expect(await dump(organizations)).toEqual(before);
});
