// Whatever changes access is judged as a change of a rule is: the answer says what is newly permitted, and the change can be refused.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ID } from '../../../admin/tenants.ts';
import { type ManagementServer, startManagementServer } from '../management-server.ts';
import { addCustomModel, addCustomProvider, addTagSet, SECRET } from '../provider-fixtures.ts';

let server: ManagementServer;
/** The holders of the organization: its keys and members. */
let holders: number;

beforeAll(async () => {
  server = await startManagementServer();
});
afterAll(() => server.close());

const NOTHING = { count: 0, cells: [] };

const send = async (method: string, path: string, body?: object) => {
  const { status, text } = await server.request(method, `/v1/master/${path}`, body === undefined ? {} : { body });
  return { status, ...JSON.parse(text) };
};

const mappingsOf = ({ widens }: { widens: { cells: { mapping: string }[] } }): string[] =>
  [...new Set(widens.cells.map(({ mapping }) => mapping))].sort();

/** A rule of the organization, as long as `work` runs. */
async function under(rule: object, work: () => Promise<void>): Promise<void> {
  const { rule: made } = await send('POST', 'organization/iam', rule);
  try {
    await work();
  } finally {
    await send('DELETE', `organization/iam/${made.id}`);
  }
}

const tagRule = (ruleType: string, ...tags: string[]) => ({ ruleType, ruleValue: { tags } });

let provider: string;
beforeEach(async () => {
  for (const { id } of (await send('GET', 'custom-providers')).customProviders) {
    await send('DELETE', `custom-providers/${id}`);
  }
  provider = await addCustomProvider(server, { name: 'acme', keyless: true });
  const { widens } = await send('POST', 'custom-models', { customProviderId: provider, model: 'llama' });
  holders = widens.count;
});

describe('tags', () => {
  it('that an allow rule asks for open what they stand on, to every holder; a refused change changes nothing', async () => {
    await under(tagRule('allow_tags', 'region:eu'), async () => {
      const body = { target: 'acme/*', tags: ['region:eu'] };
      const refused = await send('POST', 'tag-sets?failOnNewAccess=true', body);
      expect([refused.status, refused.error]).toEqual([409, expect.objectContaining({ code: 'new_access' })]);
      expect(refused.error.message).toMatch(/^The change is refused: it would newly permit acme\/llama for .+ more\.$/);
      expect((await send('GET', 'tag-sets')).tagSets).toEqual([]);

      const made = await send('POST', 'tag-sets', body);
      expect([made.status, made.widens.count, mappingsOf(made)]).toEqual([201, holders, ['acme/llama']]);
      const key = made.widens.cells.find(({ holder }: { holder: { id: string } }) => holder.id === ID.developerKey);
      expect(key).toMatchObject({ credential: true, addresses: ['0.0.0.0/0', '::/0', 'unknown'], moreAddresses: 0 });

      const id = made.tagSet.id;
      expect((await send('PATCH', `tag-sets/${id}`, { tags: ['region:us'] })).widens).toEqual(NOTHING);
      expect((await send('PATCH', `tag-sets/${id}?failOnNewAccess=true`, { tags: ['region:eu'] })).status).toBe(409);
      expect((await send('DELETE', `tag-sets/${id}?failOnNewAccess=true`)).widens).toEqual(NOTHING);
    });
  });

  it('that a deny rule asks for open what they are taken from', async () => {
    const id = await addTagSet(server, { target: 'acme/llama', tags: ['secret'] });
    await under(tagRule('deny_tags', 'secret'), async () => {
      expect((await send('DELETE', `tag-sets/${id}?failOnNewAccess=true`)).status).toBe(409);
      const changed = await send('PATCH', `tag-sets/${id}`, { tags: ['open'] });
      expect([changed.widens.count, mappingsOf(changed)]).toEqual([holders, ['acme/llama']]);
      expect((await send('PATCH', `tag-sets/${id}`, { tags: ['secret', 'other'] })).widens).toEqual(NOTHING);
      expect((await send('DELETE', `tag-sets/${id}`)).widens.count).toBe(holders);
    });
  });
});

describe('custom providers and models', () => {
  it('a new model is new access, and one that is removed none', async () => {
    const path = 'custom-models?failOnNewAccess=true';
    const body = { customProviderId: provider, model: 'other' };
    expect((await send('POST', path, body)).status).toBe(409);
    const made = await send('POST', 'custom-models', body);
    expect([made.widens.count, mappingsOf(made)]).toEqual([holders, ['acme/other']]);
    expect((await send('DELETE', `custom-models/${made.customModel.id}`)).widens).toEqual(NOTHING);
  });

  it('a lower price opens what a rule denied for its price', async () => {
    const model = await addCustomModel(server, {
      customProviderId: provider,
      model: 'dear',
      inputPricePerMillion: '30',
      outputPricePerMillion: '75',
    });
    await under({ ruleType: 'deny_pricing', ruleValue: { maxOutputPrice: 40 } }, async () => {
      const cheaper = { outputPricePerMillion: '39' };
      const refused = await send('PATCH', `custom-models/${model}?failOnNewAccess=true`, cheaper);
      expect(refused.status).toBe(409);
      const changed = await send('PATCH', `custom-models/${model}`, cheaper);
      expect([changed.widens.count, mappingsOf(changed)]).toEqual([holders, ['acme/dear']]);
      expect((await send('PATCH', `custom-models/${model}`, { displayName: 'Dear' })).widens).toEqual(NOTHING);
    });
  });
});

describe('provider keys', () => {
  it('a first credential makes what the rules permit callable; of one more, or its label, nothing is new', async () => {
    const body = { provider: 'groq', label: 'Groq', token: SECRET };
    const refused = await send('POST', 'provider-keys?failOnNewAccess=true', body);
    expect(refused.status).toBe(409);
    const made = await send('POST', 'provider-keys', body);
    expect(mappingsOf(made).length).toBeGreaterThan(0);
    expect(mappingsOf(made).every((mapping) => mapping.startsWith('groq/'))).toBe(true);
    const path = `provider-keys/${made.providerKey.id}`;
    expect((await send('POST', 'provider-keys', { ...body, label: 'Second' })).widens).toEqual(NOTHING);
    expect((await send('PATCH', path, { label: 'Main' })).widens).toEqual(NOTHING);
    expect((await send('DELETE', path)).widens).toEqual(NOTHING);
  });
});

describe('keys and members', () => {
  it('tags of a key, and the role of a member, are judged and add no access by the rules', async () => {
    const key = await send('PATCH', `keys/${ID.developerKey}?failOnNewAccess=true`, { tags: ['team:a'] });
    expect([key.status, key.widens]).toEqual([200, NOTHING]);
    const member = await send('PATCH', `members/${ID.developer}?failOnNewAccess=true`, { role: 'admin' });
    expect([member.status, member.widens]).toEqual([200, NOTHING]);
    await send('PATCH', `members/${ID.developer}`, { role: 'developer' });
  });
});

it('a change of anything else between the judging and the write is judged again', async () => {
  await under(tagRule('allow_tags', 'region:eu'), async () => {
    const answers = await Promise.all(
      ['acme/llama', 'acme/*', 'sandbox/sandbox-free', 'sandbox-paid', 'sandbox/*'].map((target) =>
        send('POST', 'tag-sets', { target, tags: ['mine'] }),
      ),
    );
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 201, 201, 201]);
  });
});
