// Two organizations that have one of everything, made by the API itself.

import { hash } from 'node:crypto';
import { idLike } from '../../src/domain/id.ts';
import { keepRefused } from '../../src/store/ledger/refused-requests.ts';
import { ID, START } from '../admin/tenants.ts';
import { type ManagementServer, startManagementServer } from '../http/master/management-server.ts';
import { newDecision } from '../store/fixture.ts';
import { insertCall, storedRefusal } from '../support/stored-calls.ts';
import type { Target } from './routes.ts';

export const IDENTIFIER_KINDS = [
  'key',
  /** Id or description, as draft rules name a key. */
  'keyReference',
  'keyRule',
  'memberRule',
  'groupRule',
  'organizationRule',
  'member',
  'group',
  /** Id or name, as draft rules name a group. */
  'groupReference',
  'project',
  'invitation',
  'masterKey',
  'platformKey',
  'providerKey',
  'customProvider',
  'customModel',
  'tagSet',
  'alias',
  'call',
  'decision',
  'refusedRequest',
] as const;
export type IdentifierKind = (typeof IDENTIFIER_KINDS)[number];

/** The forms in which a thing of each kind can be named: by its id first. */
export type Identifiers = Readonly<Record<IdentifierKind, readonly string[]>>;

export interface Organizations {
  readonly server: ManagementServer;
  /** Of the callers. */
  readonly own: Identifiers;
  readonly foreign: Identifiers;
  /** What a developer of the callers' organization does not see: a key of its owner and that key's rule; else as `foreign`. */
  readonly ofOwner: Identifiers;
  /** Nobody's, in the same forms. */
  readonly absent: Identifiers;
}

/** The kinds that are a key, or part of one. */
export const KEY_KINDS: readonly IdentifierKind[] = ['key', 'keyReference', 'keyRule'];

const MODEL_RULE = { ruleType: 'deny_models', ruleValue: { models: ['sandbox-slow'] } };

interface Given {
  readonly token: string;
  readonly organization: string;
  readonly project: string;
  readonly member: string;
  readonly email: string;
  /** Stands in all that people write, so that it can be told where it is not to be. */
  readonly mark: string;
}

/** Makes a thing, and answers its id. */
const makerOf =
  (server: ManagementServer, token: string) =>
  async (path: string, body: object): Promise<string> => {
    const answer = await server.request('POST', `/v1/master/${path}`, { token, body });
    const [, id] = /"id":"([^"]+)"/.exec(answer.text) ?? [];
    if (answer.status !== 201 || id === undefined) throw new Error(`${path}: ${answer.status} ${answer.text}`);
    return id;
  };

async function makeEverything(
  server: ManagementServer,
  { token, organization, project, member, email, mark }: Given,
): Promise<Identifiers> {
  const make = makerOf(server, token);
  const described = `${mark} key`;
  const rule = { ...MODEL_RULE, description: `${mark} rule` };
  const key = await make('keys', { projectId: project, createdBy: member, description: described });
  for (const path of [`members/${member}`, `projects/${project}`, 'organization']) {
    await server.request('PATCH', `/v1/master/${path}/budget`, { token, body: { usageLimit: '5' } });
  }
  const { id: call } = await server.store.write((db) =>
    insertCall(
      db,
      START,
      {
        organizationId: organization,
        projectId: project,
        keyId: key,
        memberId: member,
        requestedModel: `${mark}-model`,
      },
      newDecision({
        dataDigest: hash('sha256', '{"subjects":{}}'),
        inputJson: '{"action":"chat","subjects":[],"candidates":[]}',
      }),
    ),
  );
  const refused = storedRefusal({
    organizationId: organization,
    projectId: project,
    keyId: key,
    memberId: member,
    requestedModel: `${mark}-model`,
  });
  await server.store.write((db) => keepRefused(db, [refused]));
  const groupName = `${mark}-group`;
  const group = await make('groups', { name: groupName, description: `${mark} description` });
  await server.request('PATCH', `/v1/master/groups/${group}`, {
    token,
    body: { addMembers: [member], addKeys: [key] },
  });
  const customProvider = await make('custom-providers', { name: mark, baseUrl: `https://${mark}.example/v1` });
  return {
    key: [key],
    keyReference: [key, described],
    keyRule: [await make(`keys/${key}/iam`, rule)],
    memberRule: [await make(`members/${member}/iam`, rule)],
    groupRule: [await make(`groups/${group}/iam`, rule)],
    organizationRule: [await make('organization/iam', rule)],
    group: [group],
    groupReference: [group, groupName],
    member: [member, email],
    project: [project],
    invitation: [await make('invitations', { email: `${mark}@example.com`, role: 'developer' })],
    masterKey: [await make('master-keys', { description: `${mark} master key` })],
    platformKey: [await make('platform-keys', { projectId: project, description: `${mark} platform key` })],
    providerKey: [
      await make('provider-keys', { provider: 'openai', label: `${mark} label`, token: `sk-${mark}-0123456789-tail` }),
    ],
    customProvider: [customProvider],
    customModel: [await make('custom-models', { customProviderId: customProvider, model: `${mark}-model` })],
    tagSet: [await make('tag-sets', { target: `${mark}/*`, tags: [`of-${mark}`] })],
    alias: [await make('aliases', { name: `${mark}-alias`, projectId: project, models: ['sandbox-free'] })],
    call: [call],
    decision: [idLike(call, 'dec')],
    refusedRequest: [refused.id],
  };
}

const ABSENT_ID = 'f'.repeat(32);

/** The same forms with ids that nobody has, and words that nobody uses. */
const absentFor = (identifiers: Identifiers): Identifiers => {
  const forms = (kind: IdentifierKind) =>
    identifiers[kind].map((form) => {
      const [, prefix] = /^([a-z]+)_[0-9a-f]{32}$/.exec(form) ?? [];
      if (prefix !== undefined) return `${prefix}_${ABSENT_ID}`;
      return form.includes('@') ? 'nobody@example.org' : 'absent key';
    });
  return {
    key: forms('key'),
    keyReference: forms('keyReference'),
    keyRule: forms('keyRule'),
    memberRule: forms('memberRule'),
    groupRule: forms('groupRule'),
    organizationRule: forms('organizationRule'),
    group: forms('group'),
    groupReference: forms('groupReference'),
    member: forms('member'),
    project: forms('project'),
    invitation: forms('invitation'),
    masterKey: forms('masterKey'),
    platformKey: forms('platformKey'),
    providerKey: forms('providerKey'),
    customProvider: forms('customProvider'),
    customModel: forms('customModel'),
    tagSet: forms('tagSet'),
    alias: forms('alias'),
    call: forms('call'),
    decision: forms('decision'),
    refusedRequest: forms('refusedRequest'),
  };
};

/** A management server with two organizations that have one of everything. */
export async function startOrganizations(): Promise<Organizations> {
  const server = await startManagementServer();
  // Another project each, so that the one that is named here may be deleted.
  for (const token of [server.tokens.owner, server.tokens.foreigner]) {
    await server.request('POST', '/v1/master/projects', { token, body: { name: 'Another' } });
  }
  const own = await makeEverything(server, {
    token: server.tokens.owner,
    organization: ID.organization,
    project: ID.project,
    member: ID.developer,
    email: 'developer@example.com',
    mark: 'own',
  });
  const foreign = await makeEverything(server, {
    token: server.tokens.foreigner,
    organization: ID.otherOrganization,
    project: ID.otherProject,
    member: ID.foreigner,
    email: 'foreigner@example.com',
    mark: 'foreign',
  });
  const rule = await makerOf(server, server.tokens.owner)(`keys/${ID.ownerKey}/iam`, MODEL_RULE);
  const ofOwner = { ...foreign, key: [ID.ownerKey], keyReference: [ID.ownerKey, "The owner's"], keyRule: [rule] };
  return { server, own, foreign, ofOwner, absent: absentFor(foreign) };
}

export const send = ({ server }: Organizations, token: string, { method, path, body }: Target) =>
  server.request(method, path, { token, ...(body === undefined ? {} : { body }) });

type Row = readonly unknown[];

/** Every row of every table; of the callers' own use alone is left out when a master key was last used. */
export const dump = ({ server }: Organizations): Promise<Record<string, Row[]>> =>
  server.store.read(({ connection }) => {
    const tables = connection
      .prepare<[], string>("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
      .pluck()
      .all();
    return Object.fromEntries(
      tables.map((table) => {
        const columns = connection.prepare<[], { name: string }>(`PRAGMA table_info(${table})`).all();
        const names = columns
          .map(({ name }) => name)
          .filter((name) => !(table === 'master_keys' && name === 'lastUsedAt'));
        const rows = connection
          .prepare<[], Row>(`SELECT ${names.join(', ')} FROM ${table} ORDER BY 1`)
          .safeIntegers(true);
        return [table, rows.raw().all()];
      }),
    );
  });

/** Texts that stand in rows of the other organization and in none of the callers': no answer to them may hold one. */
export async function foreignTexts({ server }: Organizations): Promise<string[]> {
  const texts = (organizationId: string) =>
    server.store.read(({ connection }) => {
      const tables = connection
        .prepare<[], { table: string; column: string }>(
          `SELECT m.name AS "table", c.name AS "column" FROM sqlite_schema m, pragma_table_info(m.name) c
           WHERE m.type = 'table' AND c.name = 'organizationId'`,
        )
        .all();
      const rows = tables.flatMap(({ table, column }) =>
        connection.prepare<[string], Row>(`SELECT * FROM ${table} WHERE ${column} = ?`).raw().all(organizationId),
      );
      return new Set(rows.flat().filter((value) => typeof value === 'string'));
    });
  const own = await texts(ID.organization);
  // Short words, such as a role or a state, are nobody's.
  return [...(await texts(ID.otherOrganization))].filter((text) => text.length >= 8 && !own.has(text));
}
