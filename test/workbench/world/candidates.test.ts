import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createCatalog } from '../../../src/catalog/catalog.ts';
import { readConfig } from '../../../src/config/config.ts';
import { servedProviders } from '../../../src/config/upstreams.ts';
import { createProviders } from '../../../src/providers/providers.ts';
import type { Database } from '../../../src/store/db/database.ts';
import { insertCustomProvider } from '../../../src/store/providers/custom-provider-records.ts';
import { insertProviderKey } from '../../../src/store/providers/provider-key-records.ts';
import { credentialsIn, organizationSets } from '../../../src/workbench/world/candidates.ts';
import { activeMappings, readWorld, type World, worldOf } from '../../../src/workbench/world/world.ts';
import { catalog, ID, pepper, seededDatabase, startMs } from '../../admin/tenants.ts';
import { smallWorld } from '../small-world.ts';

describe('the providers that the operator serves', () => {
  it.each([
    {},
    { SANDBOX: 'off' },
    { OPENAI_API_KEY: 'sk-none', MISTRAL_BASE_URL: 'https://models.example/v1' },
    { UPSTREAM_OLLAMA_BASE_URL: 'http://127.0.0.1:11434/v1', UPSTREAM_OLLAMA_MODELS: 'llama' },
  ])('are those that calls have a credential for: %j', (env) => {
    const config = readConfig(env);
    const { sandbox, upstreams, serviceProviders } = config;
    const providers = createProviders({
      sandbox: sandbox ? { origin: 'http://127.0.0.1:1', key: 'key' } : undefined,
      upstreams,
      serviceProviders,
      pepper,
    });
    const ids = createCatalog({ sandbox, upstreams, clock: { now: () => startMs } })
      .providers()
      .map(({ id }) => id);
    expect(servedProviders(config).sort()).toEqual(
      ids.filter((id) => providers.serviceCredential(id) !== undefined).sort(),
    );
  });
});

describe('the parts of a world', () => {
  let db: Database;
  beforeEach(() => {
    db = seededDatabase();
  });
  afterEach(() => db.close());

  const world = (): World => readWorld(db, { catalog, servedProviders: new Set(['sandbox']) });
  const addProvider = (organizationId: string, name: string): void => {
    insertCustomProvider(
      db,
      organizationId,
      { id: `prov_${name}`, name, wire: 'openai', baseUrl: 'https://models.example/v1', keyless: true, fields: [] },
      startMs,
    );
  };

  it('are one where nobody has custom providers', () => {
    expect(organizationSets([world()])).toEqual([
      { organizationIds: new Set([ID.organization, ID.otherOrganization]), mappings: activeMappings({ catalog }) },
    ]);
  });

  it('are others for an organization with its own providers: what those hide is not there', () => {
    addProvider(ID.otherOrganization, 'openai');
    const [first, second, ...others] = organizationSets([world()]);
    expect(others).toEqual([]);
    expect(first?.organizationIds).toEqual(new Set([ID.organization]));
    expect(first?.mappings).toEqual(activeMappings({ catalog }));
    expect(second?.organizationIds).toEqual(new Set([ID.otherOrganization]));
    expect(second?.mappings).toEqual(activeMappings({ catalog }).filter(({ providerId }) => providerId !== 'openai'));
  });

  it('hold who belongs to them', () => {
    const part = worldOf(world(), new Set([ID.otherOrganization]));
    expect([...part.organizations.keys(), ...part.members.keys(), ...part.keys.keys()]).toEqual([
      ID.otherOrganization,
      ID.foreigner,
      ID.foreignKey,
    ]);
  });

  it("count a project's provider keys for its calls and for members, and for nobody of another organization", () => {
    const key = {
      id: 'pkey_1',
      label: 'Ours',
      provider: 'xai',
      projectId: ID.project,
      baseUrl: null,
      secret: { keyId: 'test', ciphertext: '' },
      mask: '',
      status: 'active',
    } as const;
    insertProviderKey(db, ID.organization, key, startMs);
    const hasCredential = credentialsIn(world());
    const [mapping] = catalog.mappings().filter(({ providerId }) => providerId === 'xai');
    if (mapping === undefined) throw new Error('xai serves nothing');
    const callers = [
      { organizationId: ID.organization, projectId: ID.project },
      { organizationId: ID.organization, projectId: 'proj_other' },
      { organizationId: ID.organization, projectId: null },
      { organizationId: ID.otherOrganization, projectId: null },
    ];
    expect(callers.map((caller) => hasCredential(caller, mapping))).toEqual([true, false, true, false]);
  });
});

it('of two worlds either is enough, a document says nothing, and two documents leave everything open', () => {
  const caller = { organizationId: 'org_1', projectId: 'proj_1' };
  const openai = smallWorld({}, { served: ['openai'] });
  const azure = smallWorld({}, { served: ['azure'] });
  const document = smallWorld({}, { providers: null, served: [] });
  const callable = (...worlds: World[]): string[] => {
    const hasCredential = credentialsIn(...worlds);
    const ids = activeMappings(openai).filter((mapping) => hasCredential(caller, mapping));
    return [...new Set(ids.map(({ providerId }) => providerId))];
  };
  expect([
    callable(openai),
    callable(openai, azure),
    callable(document, openai),
    callable(document),
    callable(document, document),
  ]).toEqual([['openai'], ['azure', 'openai'], ['openai'], ['azure', 'openai'], ['azure', 'openai']]);
});
