import { pointerStep } from '../../domain/check-shape.ts';
import { ApiError } from '../../domain/errors.ts';
import { readRule } from '../../domain/rule-content.ts';
import type { FolderOwner, PolicyFolder, Scope } from '../../generated/types.ts';
import { entryOf } from '../../lib/text.ts';
import type { Given } from '../fixtures/fixture-given.ts';
import { type GivenRule, type GivenSubject, NOBODY } from '../fixtures/fixture-rules.ts';
import { FixtureFault } from '../fixtures/fixture-source.ts';
import { liveSubject, type TestedRules } from '../fixtures/live-rules.ts';
import type { WorldRule } from '../world/world.ts';
import type { ReadFolder } from './policy-folder.ts';

/**
 * Rules of a policy folder, for fixtures: their keys, members, groups and organization have the folder's rules if it names
 * them, all others have none. The fixture defines who is in a group. It needs no database, so it knows a key by its id only if
 * a fixture names the key so.
 * @throws FixtureFault for a rule that makes no sense; `rulesFor` for a key that is likely misspelt
 */
export function folderRules({ document, placeOf }: ReadFolder): TestedRules {
  const { organization, groups = {}, members = {}, keys = {} } = document;
  const subjectOf = (
    scope: Scope,
    pointer: string,
    stated: FolderOwner | undefined,
    written: GivenSubject,
    owner?: string,
  ) => {
    const { rules } = liveSubject(scope, activeRules(pointer, stated, placeOf), written, owner);
    const placed = rules.map(
      (rule): GivenRule => ({ ...rule, place: placeOf(rulePointer(pointer, rule.storedId ?? '')) }),
    );
    return { rules: placed, available: true, place: placeOf(pointer) };
  };
  const organizationWith = (written: GivenSubject) => subjectOf('organization', '/organization', organization, written);
  const groupWith = (name: string, written: GivenSubject) =>
    subjectOf('group', `/groups/${pointerStep(name)}`, entryOf(groups, name), written, name);
  const memberWith = (name: string, written: GivenSubject) => {
    const stated = entryOf(members, name) === undefined ? name.toLowerCase() : name;
    return subjectOf('member', `/members/${pointerStep(stated)}`, entryOf(members, stated), written, name);
  };
  const keyWith = (name: string, written: GivenSubject) =>
    subjectOf('key', `/keys/${pointerStep(name)}`, entryOf(keys, name), written, name);
  return {
    rulesFor: (given): Given => {
      checkKeys(document, given);
      return {
        ...given,
        organization: organizationWith(given.organization),
        groups: new Map(
          [...given.groups].map(([name, written]) => [name, { ...written, ...groupWith(name, written) }]),
        ),
        members: new Map([...given.members].map(([name, written]) => [name, memberWith(name, written)])),
        keys: new Map([...given.keys].map(([name, written]) => [name, { ...written, ...keyWith(name, written) }])),
      };
    },
    all: [
      organizationWith(NOBODY),
      ...Object.keys(groups).map((name) => groupWith(name, NOBODY)),
      ...Object.keys(members).map((name) => memberWith(name, NOBODY)),
      ...Object.keys(keys).map((name) => keyWith(name, NOBODY)),
    ].flatMap(({ rules }) => rules),
  };
}

/**
 * If a folder states keys, a fixture's key counts as misspelt when the folder does not state it and the fixture itself gives it
 * neither an owner nor a group: it would have the organization's rules alone.
 * @throws FixtureFault
 */
function checkKeys({ keys = {} }: PolicyFolder, { keys: named, groups }: Given): void {
  if (Object.keys(keys).length === 0) return;
  for (const [name, { owner, place }] of named) {
    const isPlaced = owner !== undefined || groups.values().some((group) => group.keys.has(name));
    if (place === undefined || isPlaced || Object.hasOwn(keys, name)) continue;
    const text = `The policy folder states no key "${name}", and the fixture gives it neither an owner nor a group: is it misspelt?`;
    throw new FixtureFault(place, text);
  }
}

const rulePointer = (owner: string, name: string): string => `${owner}/rules/${pointerStep(name)}`;

function activeRules(owner: string, stated: FolderOwner | undefined, placeOf: ReadFolder['placeOf']): WorldRule[] {
  return Object.entries(stated?.rules ?? {}).flatMap(([name, rule]) => {
    const pointer = rulePointer(owner, name);
    try {
      const { canonical, status, mode, description } = readRule(rule);
      return status === 'active' ? { ...canonical, id: name, mode, description } : [];
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      throw new FixtureFault(placeOf(`${pointer}${error.param ?? ''}`), error.message);
    }
  });
}
