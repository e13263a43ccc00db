import type { FixtureGiven, FixtureSubject } from '../generated/types.ts';
import { type GivenRule, readRules, type Scope } from './fixture-rules.ts';
import { FixtureFault, type Path, type Place, type SourceDocument } from './fixture-source.ts';

export interface GivenSubject {
  readonly rules: readonly GivenRule[];
  /** False: its rules cannot be had. */
  readonly available: boolean;
  readonly place?: Place;
}

export interface GivenKey extends GivenSubject {
  /** A member by name; absent: somebody without rules. */
  readonly owner?: string;
}

export interface GivenSubjects {
  readonly organization: GivenSubject;
  readonly members: ReadonlyMap<string, GivenSubject>;
  /** At least one. */
  readonly keys: ReadonlyMap<string, GivenKey>;
}

/** A piece of `given`: the fixture's own, or that of an included file. */
export interface Part {
  readonly document: SourceDocument;
  /** Where `given` stands in the document. */
  readonly below: Path;
  readonly given: FixtureGiven;
}

export const NOBODY: GivenSubject = { rules: [], available: true };

/** The subjects of all parts. @throws FixtureFault for a subject, or a rule id, that comes twice, and an owner who is not given. */
export function readSubjects(parts: readonly Part[]): GivenSubjects {
  let organization: GivenSubject | undefined;
  const members = new Map<string, GivenSubject>();
  const keys = new Map<string, GivenKey>();
  for (const { document, below, given } of parts) {
    if (given.organization !== undefined) {
      const at = [...below, 'organization'];
      if (organization !== undefined) throw new FixtureFault(document.placeOf(at), 'The organization is given twice.');
      organization = readSubject(document, at, given.organization, 'organization');
    }
    for (const [name, written] of Object.entries(given.members ?? {})) {
      const at = [...below, 'members', name];
      if (members.has(name)) throw new FixtureFault(document.placeOf(at), `The member "${name}" is given twice.`);
      members.set(name, readSubject(document, at, written, 'member', name));
    }
    for (const [name, written] of Object.entries(given.keys ?? {})) {
      const at = [...below, 'keys', name];
      if (keys.has(name)) throw new FixtureFault(document.placeOf(at), `The key "${name}" is given twice.`);
      const { owner } = written;
      const subject = readSubject(document, at, written, 'key', name);
      keys.set(name, owner === undefined ? subject : { ...subject, owner });
    }
  }
  requireOwners(parts, members);
  const subjects = {
    organization: organization ?? NOBODY,
    members,
    keys: keys.size === 0 ? new Map([['key', NOBODY]]) : keys,
  };
  requireUniqueRules(rulesOf(subjects));
  return subjects;
}

function readSubject(
  document: SourceDocument,
  at: Path,
  written: FixtureSubject,
  scope: Scope,
  owner?: string,
): GivenSubject {
  const rules = readRules(document, at, written).map((each) => ({
    scope,
    ...each,
    ...(owner === undefined ? {} : { owner }),
  }));
  return { rules, available: written.unavailable !== true, place: document.placeOf(at) };
}

/** The active rules of all subjects. */
export const rulesOf = ({ organization, members, keys }: GivenSubjects): GivenRule[] =>
  [organization, ...members.values(), ...keys.values()].flatMap(({ rules }) => rules);

function requireOwners(parts: readonly Part[], members: ReadonlyMap<string, GivenSubject>): void {
  for (const { document, below, given } of parts) {
    for (const [name, { owner }] of Object.entries(given.keys ?? {})) {
      if (owner === undefined || members.has(owner)) continue;
      const place = document.placeOf([...below, 'keys', name, 'owner']);
      throw new FixtureFault(place, `There is no member "${owner}".`);
    }
  }
}

function requireUniqueRules(rules: readonly GivenRule[]): void {
  const ids = new Set<string>();
  for (const { rule, place } of rules) {
    if (ids.has(rule.id) && place !== undefined) throw new FixtureFault(place, `There are two rules "${rule.id}".`);
    ids.add(rule.id);
  }
}
