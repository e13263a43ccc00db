import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ManagementServer, outcome, refused, startManagementServer } from '../management-server.ts';
import { addCustomProvider, addTagSet } from '../provider-fixtures.ts';

let server: ManagementServer;
let id: string;

beforeAll(async () => {
  server = await startManagementServer();
  await addCustomProvider(server, { name: 'acme' });
  id = await addTagSet(server, { target: 'sandbox/*' });
});
afterAll(() => server.close());

const PATH = '/v1/master/tag-sets';
const TAG = 'must be a word or `name:value`, of small letters, digits and _ . -.';
const FACT = (tag: string, model: string) =>
  `"${tag}" would state a fact of ${model}, and facts of the catalogue's models come from the catalogue: choose another name.`;

describe('tags are refused for', () => {
  it.each<[object, string | null, string]>([
    [{ target: undefined }, '/target', '/target is missing.'],
    [{ tags: undefined }, '/tags', '/tags is missing.'],
    [{ tags: [] }, '/tags', '/tags must hold at least one entry.'],
    [{ tags: Array.from({ length: 21 }, (_, n) => `t${n}`) }, '/tags', '/tags must hold at most 20 entries.'],
    [{ tags: ['ok', 'Region:EU'] }, '/tags/1', `/tags/1 ("Region:EU") ${TAG}`],
    [{ tags: ['a:b:c'] }, '/tags/0', `/tags/0 ("a:b:c") ${TAG}`],
    [{ tags: ['region:*'] }, '/tags/0', `/tags/0 ("region:*") ${TAG}`],
    [{ target: 'sandbox-*' }, '/target', '/target ("sandbox-*") must be the name of a model, or `<provider>/*`.'],
    [{ target: 'sandbox-fre' }, '/target', 'Nothing has the name "sandbox-fre"; did you mean `sandbox-free`?'],
    [{ target: 'sandbx/*' }, '/target', 'Nothing has the name "sandbx/*"; did you mean `sandbox/*`?'],
    [{ target: 'acme/none' }, '/target', 'Nothing has the name "acme/none".'],
    [{ target: 'custom/*' }, '/target', 'Nothing has the name "custom/*".'],
    [{ tags: ['x', 'region:eu'] }, '/tags/1', FACT('region:eu', 'sandbox/sandbox-free')],
    [{ tags: ['region'] }, '/tags/0', FACT('region', 'sandbox/sandbox-free')],
    [{ tags: ['no_training'] }, '/tags/0', FACT('no_training', 'sandbox/sandbox-free')],
    [
      { target: 'sandbox/sandbox-paid', tags: ['stability:best'] },
      '/tags/0',
      FACT('stability:best', 'sandbox/sandbox-paid'),
    ],
  ])('%j', async (body, param, message) => {
    const sent = { target: 'sandbox-free', tags: ['team:research'], ...body };
    expect(await outcome(server.request('POST', PATH, { body: sent }))).toEqual({
      status: 400,
      body: refused('invalid_request', message, param),
    });
  });

  it('a target that has tags already, naming them', async () => {
    expect(await outcome(server.request('POST', PATH, { body: { target: 'sandbox/*', tags: ['x'] } }))).toEqual({
      status: 400,
      body: refused('invalid_request', `"sandbox/*" has tags already: change ${id}.`, '/target'),
    });
  });

  it('a change that states a fact, or names another target', async () => {
    const change = (body: object) => outcome(server.request('PATCH', `${PATH}/${id}`, { body }));
    expect(await change({ tags: ['retention:none'] })).toMatchObject({
      status: 400,
      body: { error: { param: '/tags/0' } },
    });
    expect(await change({ tags: ['x'], target: 'sandbox-free' })).toEqual({
      status: 400,
      body: refused('invalid_request', '/target ("sandbox-free") is not a known field.', '/target'),
    });
  });
});
