import { asCreate } from '../../domain/rule-content.ts';
import type { FolderOwner, PolicyFolder } from '../../generated/types.ts';
import type { Database } from '../../store/db/database.ts';
import { listRules, type RuleRecord } from '../../store/rules/rules.ts';
import { type Actor, checkManagesOrganization } from '../audit/actor.ts';
import { getRuleSubject, listRuleOwners } from '../rules/rule-owner.ts';
import { folderOf, OwnerNames } from './folder-owners.ts';
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
