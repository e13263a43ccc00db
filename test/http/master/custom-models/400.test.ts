import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createCustomModel } from '../../../../src/admin/providers/custom-models.ts';
import { owner } from '../../../admin/tenants.ts';
import { type ManagementServer, outcome, refused, startManagementServer } from '../management-server.ts';
import { addCustomModel, addCustomProvider } from '../provider-fixtures.ts';

let server: ManagementServer;

beforeAll(async () => {
  server = await startManagementServer();
});
afterAll(() => server.close());

const PATH = '/v1/master/custom-models';
const PRICE =
  'must be null or a price in USD: a plain decimal string such as "0.0000025", with at most 12 places, at most 9000000.';
const PER_MILLION =
  'must be null or a price in USD per million tokens: a plain decimal string such as "2.5", with at most 6 places.';
const TOKENS = 'must be null or a whole number of tokens from 1 to 1000000000.';

let customProviderId: string;
let id: string;
beforeAll(async () => {
  customProviderId = await addCustomProvider(server, { name: 'acme' });
  id = await addCustomModel(server, { customProviderId });
});

describe('POST /v1/master/custom-models is refused for', () => {
  it.each<[object, string, string]>([
    [{ model: undefined }, '/model', '/model is missing.'],
    [{ customProviderId: undefined }, '/customProviderId', '/customProviderId is missing.'],
    [
      { model: 'a b' },
      '/model',
      '/model ("a b") must be 1 to 448 characters, each a letter, a digit or one of . _ : @ / -.',
    ],
    [{ model: '' }, '/model', '/model ("") must be 1 to 448 characters, each a letter, a digit or one of . _ : @ / -.'],
    [{ model: 'org/model-7b' }, '/model', 'The custom provider acme has a model "org/model-7b" already.'],
    [{ pricing: { prompt: '0.0000000000001' } }, '/pricing/prompt', `/pricing/prompt ("0.0000000000001") ${PRICE}`],
    [{ pricing: { prompt: 0.1 } }, '/pricing/prompt', `/pricing/prompt (0.1) ${PRICE}`],
    [{ pricing: { completion: '-1' } }, '/pricing/completion', `/pricing/completion ("-1") ${PRICE}`],
    [{ pricing: { request: '9000001' } }, '/pricing/request', 'An amount may be at most 9000000 USD.'],
    [
      { pricing: { prompt: '0.1' }, inputPricePerMillion: '1' },
      '/inputPricePerMillion',
      '/inputPricePerMillion and /pricing/prompt state the same price.',
    ],
    [{ inputPricePerMillion: '-1' }, '/inputPricePerMillion', `/inputPricePerMillion ("-1") ${PER_MILLION}`],
    [{ pricing: { tokens: '1' } }, '/pricing/tokens', '/pricing/tokens ("1") is not a known field.'],
    [{ contextLength: 0 }, '/contextLength', `/contextLength (0) ${TOKENS}`],
    [{ maxOutput: 1.5 }, '/maxOutput', `/maxOutput (1.5) ${TOKENS}`],
    [{ tools: 1 }, '/tools', '/tools (1) must be of type boolean.'],
    [{ inputModalities: [] }, '/inputModalities', '/inputModalities must hold at least one entry.'],
    [
      { inputModalities: ['smell'] },
      '/inputModalities/0',
      '/inputModalities/0 ("smell") must be one of text, image, audio, video, file.',
    ],
    [{ inputModalities: ['text'], vision: true }, '/vision', 'vision and image among inputModalities go together.'],
    [{ free: true }, '/free', '/free (true) is not a known field.'],
  ])('%j', async (fields, param, message) => {
    const body = { customProviderId, model: 'another', ...fields };
    const answer = await server.request('POST', PATH, { body });
    expect(await outcome(answer)).toEqual({ status: 400, body: refused('invalid_request', message, param) });
  });

  it('the 501st of an organization', async () => {
    await server.store.write((db, now) => {
      for (let count = 1; count < 500; count++) {
        createCustomModel(db, owner, { customProviderId, model: `m${count}` }, now);
      }
    });
    expect(await outcome(server.request('POST', PATH, { body: { customProviderId, model: 'last' } }))).toEqual({
      status: 400,
      body: refused('invalid_request', 'An organization has at most 500 custom models.'),
    });
  });
});

describe('PATCH /v1/master/custom-models/{id} is refused for', () => {
  it.each<[object, string, string]>([
    [{}, '', 'The request body must hold at least one field.'],
    [{ model: 'x' }, '/model', '/model ("x") cannot be changed: requests and rules mean the model by it.'],
    [{ displayName: '' }, '/displayName', '/displayName ("") must be a text of 1 to 256 characters.'],
  ])('%j', async (body, param, message) => {
    const answer = await server.request('PATCH', `${PATH}/${id}`, { body });
    expect(await outcome(answer)).toEqual({ status: 400, body: refused('invalid_request', message, param) });
  });
});
