import { pointerStep } from '../../domain/check-shape.ts';
import { invalidField } from '../../domain/errors.ts';
import { asCreate } from '../../domain/rule-content.ts';
import type { FolderOwner, PolicyFolder } from '../../generated/types.ts';
import type { Database } from '../../store/db/database.ts';
import { listRules, type RuleRecord } from '../../store/rules/rules.ts';
import { findGroupByName } from '../../store/tenants/group-records.ts';
import { listKeyDescriptions } from '../../store/tenants/key-records.ts';
import { type Actor, checkManagesOrganization } from '../audit/audit-trail.ts';
import { getRuleSubject, listRuleOwners, type RuleOwner, type RuleSubject } from '../rules/rule-owner.ts';
import { contentOf } from './match-rules.ts';

/**
 * A folder that states the organization's rules as they are, but for those that other folders state: its apply only names them. 403
 * for developers. @param source what it calls itself
 */
export function readLiveFolder(db: Database, actor: Actor, source: string): PolicyFolder {
  checkManagesOrganization(actor);
  const owners = listRuleOwners(db, actor).flatMap((owner) => {
    const subject = getRuleSubject(db, actor, owner);
    const own = listRules(db, actor.organizationId, subject.id).filter(
      ({ managedBy }) => managedBy === null || managedBy === source,
    );
    return own.length === 0 ? [] : { subject, rules: namedRules(own) };
  });
  return folderOf(source, owners, new OwnerNames(db, actor.organizationId));
}

/** In the order of their names. */
function namedRules(rules: readonly RuleRecord[]): FolderOwner['rules'] {
  const taken = new Set(rules.flatMap(({ managedName }) => managedName ?? []));
  const named = rules.map((rule): [string, FolderOwner['rules'][string]] => {
    const name = rule.managedName ?? freeName(rule, taken);
    taken.add(name);
    return [name, written(rule)];
  });
  return Object.fromEntries(named.sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Characters of a name; its end may be a number. */
const LONGEST = 60;

function freeName({ description, ruleType }: RuleRecord, taken: ReadonlySet<string>): string {
  const words = (description ?? '').toLowerCase().replaceAll(/[^a-z0-9]+/g, '-');
  const base = words.slice(0, LONGEST).replaceAll(/^-|-$/g, '') || ruleType.replaceAll('_', '-');
  for (let number = 1; ; number += 1) {
    const name = number === 1 ? base : `${base}-${number}`;
    if (!taken.has(name)) return name;
  }
}

/** Without what is usual. */
function written(record: RuleRecord): FolderOwner['rules'][string] {
  const { status, mode, description, ...rule } = asCreate(contentOf(record));
  return {
    ...rule,
    ...(status === 'active' ? {} : { status }),
    ...(mode === 'enforce' ? {} : { mode }),
    ...(description === null ? {} : { description }),
  };
}

/** An owner whose rules a policy folder states. */
interface StatedOwner {
  /** JSON pointer into the folder's document. */
  readonly pointer: string;
  /** @throws ApiError 400 for a name that nothing has, or several */
  readonly owner: () => RuleOwner;
  readonly rules: FolderOwner['rules'];
}

/** The parts of a folder that state owners by name. */
type Named = Exclude<keyof PolicyFolder, 'source' | 'organization'>;

interface NamedKind {
  readonly part: Named;
  readonly scope: RuleSubject['scope'];
  readonly owner: (name: string, names: OwnerNames, pointer: string) => RuleOwner;
  /** The name by which a folder finds the owner again. */
  readonly nameOf: (subject: RuleSubject, names: OwnerNames) => string;
}

/** In the order of a folder. */
const NAMED: Readonly<Record<Named, NamedKind>> = {
  groups: {
    part: 'groups',
    scope: 'group',
    owner: (name, names, pointer) => ({ kind: 'group', group: names.groupId(name, pointer) }),
    nameOf: ({ name }) => name,
  },
  members: {
    part: 'members',
    scope: 'member',
    owner: (name) => ({ kind: 'member', member: name }),
    nameOf: ({ name }) => name,
  },
  keys: {
    part: 'keys',
    scope: 'key',
    owner: (name, names, pointer) => ({ kind: 'key', key: names.keyId(name, pointer) }),
    nameOf: ({ id, name }, names) => (names.isOfOneKey(name) ? name : id),
  },
};

/** Everyone whose rules a folder states, in its order. */
export function statedOwners(folder: PolicyFolder, names: OwnerNames): StatedOwner[] {
  const { organization } = folder;
  const named = Object.values(NAMED).flatMap(({ part, owner }) =>
    Object.entries(folder[part] ?? {}).map(([name, { rules }]): StatedOwner => {
      const pointer = `/${part}/${pointerStep(name)}`;
      return { pointer, owner: () => owner(name, names, pointer), rules };
    }),
  );
  if (organization === undefined) return named;
  return [{ pointer: '/organization', owner: () => ({ kind: 'organization' }), rules: organization.rules }, ...named];
}

/** JSON pointer of a rule. @param owner the pointer of its owner */
export const rulePointer = (owner: string, name: string): string => `${owner}/rules/${pointerStep(name)}`;

interface RulesOfSubject {
  readonly subject: RuleSubject;
  readonly rules: FolderOwner['rules'];
}

/** A folder's document that states these rules. */
function folderOf(source: string, owners: readonly RulesOfSubject[], names: OwnerNames): PolicyFolder {
  const folder: PolicyFolder = { source };
  const organization = owners.find(({ subject }) => subject.scope === 'organization');
  if (organization !== undefined) folder.organization = { rules: organization.rules };
  for (const { part, scope, nameOf } of Object.values(NAMED)) {
    const own = owners
      .filter(({ subject }) => subject.scope === scope)
      .map(({ subject, rules }): [string, FolderOwner] => [nameOf(subject, names), { rules }])
      .sort(([a], [b]) => (a < b ? -1 : 1));
    if (own.length > 0) folder[part] = Object.fromEntries(own);
  }
  return folder;
}

/** The groups and keys of an organization by the names that a folder has for them. */
export class OwnerNames {
  readonly #db: Database;
  readonly #organizationId: string;
  /** Read when first asked for. */
  #byDescription: Map<string, readonly { readonly id: string }[]> | undefined;

  constructor(db: Database, organizationId: string) {
    this.#db = db;
    this.#organizationId = organizationId;
  }

  groupId(name: string, pointer: string): string {
    if (/^grp_[0-9a-f]{32}$/.test(name)) return name;
    const group = findGroupByName(this.#db, this.#organizationId, name);
    if (group === undefined) throw invalidField(pointer, ': no group has this name');
    return group.id;
  }

  keyId(name: string, pointer: string): string {
    if (isKeyId(name)) return name;
    const [key, ...others] = this.#described(name);
    if (key === undefined) throw invalidField(pointer, ': no key has this description');
    if (others.length === 0) return key.id;
    const ids = [key, ...others].map(({ id }) => id).join(', ');
    throw invalidField(pointer, `: several keys have this description; use an id instead: ${ids}`);
  }

  isOfOneKey(description: string): boolean {
    return description !== '' && !isKeyId(description) && this.#described(description).length === 1;
  }

  #described(name: string): readonly { readonly id: string }[] {
    this.#byDescription ??= Map.groupBy(
      listKeyDescriptions(this.#db, this.#organizationId),
      ({ description }) => description,
    );
    return this.#byDescription.get(name) ?? [];
  }
}

const isKeyId = (name: string): boolean => /^key_[0-9a-f]{32}$/.test(name);
