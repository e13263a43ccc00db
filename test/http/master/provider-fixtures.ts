import type {
  AliasCreate,
  CustomModelCreate,
  CustomProviderCreate,
  ProviderKeyCreate,
  TagSetCreate,
} from '../../../src/generated/types.ts';
import type { ManagementServer } from './management-server.ts';

export const SECRET = 'sk-the-very-secret-0123456789-tail';

/** Id of what a POST has made. @param token master key; default: the owner's */
async function made(server: ManagementServer, path: string, body: object, token = server.tokens.owner) {
  const answer = await server.request('POST', `/v1/master/${path}`, { token, body });
  const [, id] = /"id":"([^"]+)"/.exec(answer.text) ?? [];
  if (answer.status !== 201 || id === undefined) throw new Error(answer.text);
  return id;
}

export const addCustomProvider = (
  server: ManagementServer,
  body: Partial<CustomProviderCreate> & { name: string },
  token?: string,
) => made(server, 'custom-providers', { baseUrl: 'https://models.example/v1', ...body }, token);

export const addCustomModel = (
  server: ManagementServer,
  body: Partial<CustomModelCreate> & { customProviderId: string },
  token?: string,
) => made(server, 'custom-models', { model: 'org/model-7b', ...body }, token);

export const addProviderKey = (server: ManagementServer, body: Partial<ProviderKeyCreate> = {}, token?: string) =>
  made(server, 'provider-keys', { provider: 'openai', label: 'Main', token: SECRET, ...body }, token);

export const addTagSet = (server: ManagementServer, body: Partial<TagSetCreate> = {}, token?: string) =>
  made(server, 'tag-sets', { target: 'sandbox-free', tags: ['team:research'], ...body }, token);

export const addAlias = (server: ManagementServer, body: Partial<AliasCreate> = {}, token?: string) =>
  made(server, 'aliases', { name: 'fast', models: ['sandbox-free'], ...body }, token);
