// /v1/master/aliases: names of one's own for lists of models (src/config/README.md, "Aliases").
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type ManagementServer, outcome, refused, startManagementServer } from '../management-server.ts';
import { addAlias, addCustomModel, addCustomProvider } from '../provider-fixtures.ts';

const NOW = '2026-01-31T12:00:00.000Z';
const PATH = '/v1/master/aliases';

let server: ManagementServer;

beforeEach(async () => {
  server = await startManagementServer();
});
afterEach(() => server.close());

const post = (body: unknown) => server.request('POST', PATH, { body });
const project = async (): Promise<string> => {
  const { text } = await server.request('POST', '/v1/master/projects', { body: { name: 'Other' } });
  return JSON.parse(text).project.id;
};
const names = async (query = ''): Promise<unknown> => {
  const { aliases, nextCursor } = JSON.parse((await server.request('GET', `${PATH}${query}`)).text);
  return [aliases.map(({ name }: { name: string }) => name), nextCursor];
};

describe('an alias', () => {
  it('is made for the organization, or for a project, with or without weights', async () => {
    const made = await post({ name: 'fast', models: ['sandbox-free', 'sandbox/sandbox-paid'] });
    expect([made.status, made.body]).toEqual([
      201,
      {
        alias: {
          id: expect.stringMatching(/^alias_[0-9a-f]{32}$/),
          createdAt: NOW,
          updatedAt: NOW,
          name: 'fast',
          projectId: null,
          models: ['sandbox-free', 'sandbox/sandbox-paid'],
          weights: null,
        },
        warnings: [],
      },
    ]);
    const projectId = await project();
    const own = await post({ name: 'fast', projectId, models: ['sandbox-free', 'gpt-5-mini'], weights: [80, 0] });
    expect([own.status, own.body]).toMatchObject([
      201,
      {
        alias: { projectId: expect.stringMatching(/^proj_/), weights: [80, 0] },
        warnings: ['In this project it takes the place of the organization\'s alias "fast".'],
      },
    ]);
  });

  it('is listed newest first, in pages, by project too; changes, and is gone when it is deleted', async () => {
    const projectId = await project();
    const ids = [await addAlias(server), await addAlias(server, { name: 'default' })];
    await addAlias(server, { name: 'slow', projectId });
    expect(await names()).toEqual([['slow', 'default', 'fast'], null]);
    expect(await names(`?projectId=${projectId}`)).toEqual([['slow'], null]);
    const { nextCursor } = JSON.parse((await server.request('GET', `${PATH}?limit=2`)).text);
    expect(await names(`?limit=2&cursor=${nextCursor}`)).toEqual([['fast'], null]);

    const body = { models: ['sandbox-paid', 'sandbox-free'], weights: [1, 1000] };
    const changed = await server.request('PATCH', `${PATH}/${ids[0]}`, { body });
    const one = await server.request('GET', `${PATH}/${ids[0]}`);
    expect([changed.status, one.body]).toEqual([200, changed.body]);
    expect(one.body).toMatchObject({ alias: { name: 'fast', ...body } });
    const unweighted = await server.request('PATCH', `${PATH}/${ids[0]}`, { body: { weights: null } });
    expect(unweighted.body).toMatchObject({ alias: { ...body, weights: null } });

    for (const id of ids) {
      expect((await server.request('DELETE', `${PATH}/${id}`)).body).toEqual({ id, deleted: true });
    }
    expect(await names()).toEqual([['slow'], null]);
    expect((await server.request('DELETE', `/v1/master/projects/${projectId}`)).status).toBe(200);
    expect(await names()).toEqual([[], null]);
  });

  it('stands in the audit log: made, changed, deleted', async () => {
    const id = await addAlias(server);
    await server.request('PATCH', `${PATH}/${id}`, { body: { models: ['sandbox-paid'] } });
    await server.request('DELETE', `${PATH}/${id}`);
    const { entries } = Object((await server.request('GET', `/v1/master/audit?targetId=${id}`)).body);
    const told = entries.map(({ action, before, after }: Record<string, { models: string[] } | null>) => [
      action,
      before?.models ?? null,
      after?.models ?? null,
    ]);
    expect(told).toEqual([
      ['alias.delete', ['sandbox-paid'], null],
      ['alias.update', ['sandbox-free'], ['sandbox-paid']],
      ['alias.create', null, ['sandbox-free']],
    ]);
  });

  it('warns where its name means something else, and of models that are gone', async () => {
    await addCustomProvider(server, { name: 'acme' });
    const customProviderId = await addCustomProvider(server, { name: 'other' });
    const model = await addCustomModel(server, { customProviderId, model: 'own' });
    const shadow = await post({ name: 'gpt-5-mini', models: ['sandbox-free'] });
    expect(shadow.body).toMatchObject({
      warnings: [
        '"gpt-5-mini" is also the name of a model in the catalogue: requests for it mean the alias from now on, and `openai/gpt-5-mini` the model. Rules that name it judge the model, not the alias.',
      ],
    });
    for (const name of ['acme', 'openai']) {
      expect((await post({ name, models: ['sandbox-free'] })).body).toMatchObject({
        warnings: [`"${name}" is also a provider: \`${name}/<model>\` does not mean the alias.`],
      });
    }
    const id = await addAlias(server, { models: ['other/own', 'sandbox-free'] });
    await server.request('DELETE', `/v1/master/custom-models/${model}`);
    expect((await server.request('GET', `${PATH}/${id}`)).body).toMatchObject({
      warnings: ['Nothing has the name "other/own" any more: the alias leaves it out.'],
    });
  });
});

describe('an alias is refused with 400 for', () => {
  const NAME =
    'must be 1 to 128 characters, each a letter, a digit or one of . _ : @ -, of which the first is a letter or a digit.';
  const WEIGHT = 'must be a whole number from 0 to 1000.';

  it.each<[object, string | null, string]>([
    [{ name: undefined }, '/name', '/name is missing.'],
    [{ name: '' }, '/name', `/name ("") ${NAME}`],
    [{ name: 'fast*' }, '/name', `/name ("fast*") ${NAME}`],
    [{ name: 'acme/fast' }, '/name', `/name ("acme/fast") ${NAME}`],
    [{ name: '__proto__' }, '/name', `/name ("__proto__") ${NAME}`],
    [
      { name: 'fa\u202est' },
      '/name',
      '/name holds U+202E: control characters and characters that cannot be seen are not allowed.',
    ],
    [{ name: 'x'.repeat(129) }, '/name', `/name ("${'x'.repeat(99)}…) ${NAME}`],
    [{ name: 'auto' }, '/name', '"auto" cannot be an alias: it has a meaning already.'],
    [{ name: 'custom' }, '/name', '"custom" cannot be an alias: it has a meaning already.'],
    [{ models: undefined }, '/models', '/models is missing.'],
    [{ models: [] }, '/models', '/models must hold at least one entry.'],
    [{ models: Array.from({ length: 21 }, (_, n) => `m${n}`) }, '/models', '/models must hold at most 20 entries.'],
    [
      { models: ['sandbox-*'] },
      '/models/0',
      '/models/0 ("sandbox-*") must be the name of a model: letters, digits and . _ : @ / -.',
    ],
    [{ models: ['sandbox-fre'] }, '/models/0', 'Nothing has the name "sandbox-fre"; did you mean `sandbox-free`?'],
    [{ models: ['fast'] }, '/models/0', '"fast" is an alias, and an alias lists models only.'],
    [{ models: ['sandbox-free', 'present'] }, '/models/1', '"present" is an alias, and an alias lists models only.'],
    [
      { name: 'sandbox-free' },
      '/models/0',
      '"sandbox-free" is an alias, and an alias lists models only; `sandbox/sandbox-free` means the model.',
    ],
    [
      { models: ['auto'] },
      '/models/0',
      'Nothing has the name "auto": `auto` leaves the choice to the gateway, and is no model.',
    ],
    [{ models: ['acme/none'] }, '/models/0', 'Nothing has the name "acme/none".'],
    [{ models: ['sandbox-free', 'sandbox-free'] }, '/models/1', '"sandbox-free" is listed twice.'],
    [{ weights: [1, 2] }, '/weights', '/weights must hold 1 entries, one for each model.'],
    [{ weights: [0] }, '/weights', 'One of the weights must be above 0.'],
    [{ weights: [-1] }, '/weights/0', `/weights/0 (-1) ${WEIGHT}`],
    [{ weights: [1.5] }, '/weights/0', `/weights/0 (1.5) ${WEIGHT}`],
    [{ weights: [1e300] }, '/weights/0', `/weights/0 (1e+300) ${WEIGHT}`],
    [{ name: 'present' }, '/name', 'There is an alias "present" already: change ALIAS.'],
    [{ widens: true }, '/widens', '/widens (true) is not a known field.'],
  ])('%j', async (body, param, message) => {
    await addCustomProvider(server, { name: 'acme' });
    const id = await addAlias(server, { name: 'present', models: ['sandbox-paid'] });
    expect(await outcome(post({ name: 'fast', models: ['sandbox-free'], ...body }))).toEqual({
      status: 400,
      body: refused('invalid_request', message.replace('ALIAS', id), param),
    });
  });

  it('a name that another alias lists, since that would be an alias of an alias', async () => {
    await addAlias(server, { models: ['sandbox-free'] });
    expect(await outcome(post({ name: 'sandbox-free', models: ['sandbox-paid'] }))).toEqual({
      status: 400,
      body: refused(
        'invalid_request',
        'The alias "fast" lists "sandbox-free", which would be an alias of an alias: name the model there with its provider first.',
        '/name',
      ),
    });
  });

  it('a change of its name or project, to an alias, or to other numbers of models and weights', async () => {
    await addAlias(server, { name: 'other', models: ['sandbox-paid'] });
    const id = await addAlias(server, { models: ['sandbox-free', 'sandbox-paid'], weights: [1, 1] });
    const change = async (body: object) =>
      Object((await server.request('PATCH', `${PATH}/${id}`, { body })).body).error;
    expect(await change({ name: 'slow' })).toMatchObject({ param: '/name' });
    expect(await change({ projectId: null })).toMatchObject({ param: '/projectId' });
    expect(await change({})).toMatchObject({ code: 'invalid_request' });
    expect(await change({ models: ['other'], weights: null })).toMatchObject({ param: '/models/0' });
    expect(await change({ models: ['fast'], weights: null })).toMatchObject({ param: '/models/0' });
    expect(await change({ models: ['sandbox-free'] })).toMatchObject({ param: '/weights' });
  });

  it('more than 200 of an organization', async () => {
    for (let n = 0; n < 200; n += 1) await addAlias(server, { name: `a${n}` });
    expect(await outcome(post({ name: 'one-more', models: ['sandbox-free'] }))).toEqual({
      status: 400,
      body: refused('invalid_request', 'An organization has at most 200 aliases.'),
    });
  });

  it('a body of 10 MB, which is refused before it is read', async () => {
    const models = Array.from({ length: 2_000_000 }, () => 'abc');
    expect((await post({ name: 'fast', models })).status).toBeGreaterThanOrEqual(400);
    expect(await names()).toEqual([[], null]);
  });
});
