import type { Catalog } from '../../catalog/catalog.ts';
import { checkContent } from '../../domain/check-shape.ts';
import { ApiError, invalidField, relocated } from '../../domain/errors.ts';
import { readRule } from '../../domain/rule-content.ts';
import type { WorldDocument, WorldDocumentOrganization, WorldDocumentRule } from '../../generated/types.ts';
import { validator } from '../../lib/schemas.ts';
import type { World, WorldGroup, WorldKey, WorldMember, WorldOrganization, WorldRule } from './world.ts';

/** The rules of a world as a document that `readWorldDocument` reads back: no catalogue, no rule revision, nobody's providers. */
export function worldDocument(world: World): WorldDocument {
  const members = [...world.members.values()];
  const keys = [...world.keys.values()];
  const groups = [...world.groups.values()];
  return {
    organizations: [...world.organizations.values()].map(({ id, name, rules }) => ({
      id,
      name,
      rules: rules.map(documentRule),
      groups: groups
        .filter(({ organizationId }) => organizationId === id)
        .map((group) => ({
          id: group.id,
          name: group.name,
          members: [...group.holderIds].filter((holder) => world.members.has(holder)),
          keys: [...group.holderIds].filter((holder) => world.keys.has(holder)),
          rules: group.rules.map(documentRule),
        })),
      members: members
        .filter(({ organizationId }) => organizationId === id)
        .map((member) => ({ id: member.id, email: member.email, rules: member.rules.map(documentRule) })),
      keys: keys
        .filter(({ organizationId }) => organizationId === id)
        .map(({ id, memberId, description, tags, rules }) => ({
          id,
          memberId,
          description,
          tags: [...tags],
          rules: rules.map(documentRule),
        })),
    })),
  };
}

const documentRule = ({ id, ruleType, ruleValue, mode, description }: WorldRule): WorldDocumentRule => ({
  id,
  ruleType,
  ruleValue,
  status: 'active',
  mode,
  description,
});

/**
 * Reads a world from a document. Documents have no custom models or credentials, so every mapping of the catalogue can be called.
 * @param content parsed JSON or YAML. @throws ApiError 400 whose `param` is the JSON pointer of the first fault
 */
export function readWorldDocument(content: unknown, catalog: Catalog): World {
  const document = checkContent(validator('WorldDocument'), content);
  const organizations = new UniqueById<WorldOrganization>();
  const members = new UniqueById<WorldMember>();
  const keys = new UniqueById<WorldKey>();
  const groups = new UniqueById<WorldGroup>();
  for (const [index, organization] of document.organizations.entries()) {
    const at = `/organizations/${index}`;
    organizations.add(at, {
      id: organization.id,
      name: organization.name ?? organization.id,
      ruleRevision: 0,
      rules: readRules(organization.rules, at),
      providers: null,
    });
    addMembers(organization, at, members);
    addKeys(organization, at, members, keys);
    addGroups(organization, at, { groups, members, keys });
  }
  return {
    catalog,
    servedProviders: new Set(),
    organizations: organizations.sorted(),
    groups: groups.sorted(),
    members: members.sorted(),
    keys: keys.sorted(),
  };
}

function addMembers({ id, members = [] }: WorldDocumentOrganization, at: string, all: UniqueById<WorldMember>): void {
  for (const [index, member] of members.entries()) {
    const place = `${at}/members/${index}`;
    const email = member.email ?? member.id;
    all.add(place, { id: member.id, organizationId: id, email, rules: readRules(member.rules, place) });
  }
}

function addKeys(
  { id, keys = [] }: WorldDocumentOrganization,
  at: string,
  members: UniqueById<WorldMember>,
  all: UniqueById<WorldKey>,
): void {
  for (const [index, key] of keys.entries()) {
    const place = `${at}/keys/${index}`;
    if (members.get(key.memberId)?.organizationId !== id) {
      throw invalidField(`${place}/memberId`, 'is not a member of the organization', { quoted: `"${key.memberId}"` });
    }
    const { memberId, description = '', tags = [] } = key;
    const rules = readRules(key.rules, place);
    all.add(place, { id: key.id, organizationId: id, projectId: null, memberId, description, tags, rules });
  }
}

interface Everyone {
  readonly groups: UniqueById<WorldGroup>;
  readonly members: UniqueById<WorldMember>;
  readonly keys: UniqueById<WorldKey>;
}

function addGroups({ id, groups = [] }: WorldDocumentOrganization, at: string, all: Everyone): void {
  for (const [index, group] of groups.entries()) {
    const place = `${at}/groups/${index}`;
    for (const what of ['members', 'keys'] as const) {
      const stranger = group[what]?.findIndex((holder) => all[what].get(holder)?.organizationId !== id) ?? -1;
      if (stranger === -1) continue;
      const pointer = `${place}/${what}/${stranger}`;
      throw invalidField(pointer, `is none of the organization's ${what}`);
    }
    all.groups.add(place, {
      id: group.id,
      organizationId: id,
      name: group.name ?? group.id,
      holderIds: new Set([...(group.members ?? []), ...(group.keys ?? [])]),
      rules: readRules(group.rules, place),
    });
  }
}

/** Checks all rules as a write would, and returns the active ones. @throws ApiError 400 for an invalid rule, or an active id that comes twice */
function readRules(rules: readonly WorldDocumentRule[] = [], at: string): WorldRule[] {
  const unique = new UniqueById<WorldRule>();
  for (const [index, { id, ...rule }] of rules.entries()) {
    const place = `${at}/rules/${index}`;
    const { canonical, mode, description, status } = placed(place, () => readRule(rule));
    if (status === 'active') unique.add(place, { ...canonical, id, mode, description });
  }
  return [...unique.sorted().values()];
}

/** Runs `read`; an error of it gets the place of its input in front of its own. */
export function placed<T>(place: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof ApiError) || error.param === null) throw error;
    throw relocated(error, place);
  }
}

class UniqueById<T extends { readonly id: string }> {
  readonly #byId = new Map<string, T>();

  add(place: string, item: T): void {
    if (this.#byId.has(item.id)) throw invalidField(`${place}/id`, 'comes twice', { quoted: `"${item.id}"` });
    this.#byId.set(item.id, item);
  }

  get(id: string): T | undefined {
    return this.#byId.get(id);
  }

  sorted(): ReadonlyMap<string, T> {
    return new Map([...this.#byId].sort(([a], [b]) => (a < b ? -1 : 1)));
  }
}
