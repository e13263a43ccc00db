import type { Catalog } from '../../catalog/catalog.ts';
import { didYouMean, KnownNames } from '../../core/known-names.ts';
import { actionOf } from '../../core/operations.ts';
import { parseRange } from '../../domain/address.ts';
import { byList, effectOf, entriesOf, kindOf, RULE_TYPES } from '../../domain/iam-rule.ts';
import { withName } from '../../domain/id.ts';
import type { Mapping } from '../../domain/model.ts';
import type { LintFinding, LintReport } from '../../generated/types.ts';
import { intervalOf, isEmpty, subtract } from '../world/address-classes.ts';
import { type Holder, holdersOf, reachOf, SubjectTasks } from '../world/holders.ts';
import type { Judges, OnProgress } from '../world/judges.ts';
import {
  contentOf,
  differing,
  FUTURE_MAPPINGS,
  type MatchedCells,
  matchedBy,
  overlap,
  type SubjectAccess,
} from '../world/subject-judge.ts';
import { organizationSubject, type World, type WorldRule, type WorldSubject } from '../world/world.ts';

type Rules = readonly WorldRule[];

/** A subject whose rules are looked at, and those outside it. */
interface Linted {
  readonly subject: WorldSubject;
  readonly outer: readonly WorldSubject[];
}

/** Mappings that lint judges: the present ones, and possible future ones, so that a rule that guards against those is not idle. */
export const lintedMappings = (mappings: readonly Mapping[]): Mapping[] => [...mappings, ...FUTURE_MAPPINGS];

/**
 * Rules that may not mean what was meant, of everyone: exact, by enumeration over all mappings, whether there is a credential
 * today or not, and all addresses.
 * @param judges of `lintedMappings` of what there is for the organizations of the world. @throws PolicyFailure
 */
export async function lintWorld(world: World, judges: Judges, onProgress?: OnProgress): Promise<LintReport> {
  const linted = subjectsOf(world);
  const tasks = new SubjectTasks();
  for (const { rules } of linted.map(({ subject }) => subject)) for (const each of variantsOf(rules)) tasks.add(each);
  await tasks.judge(judges, onProgress);
  const there = judges.mappings.slice(0, -FUTURE_MAPPINGS.length);
  const custom = there.filter((mapping) => mapping.custom);
  const aliases = [...world.organizations.values()].flatMap(({ providers }) => providers?.aliases ?? []);
  const known = new KnownNames(
    { mappings: () => [...world.catalog.mappings(), ...there], providers: () => [] },
    { providers: [], models: [], tags: [], aliases: aliases.map(({ name }) => name) },
  );
  const names = { catalog: world.catalog, custom, known };
  const findings = linted.flatMap((each) => [
    ...entryFindings(names, each.subject),
    ...rangeFindings(each.subject),
    ...emptyKinds(each.subject, judges, tasks),
    ...idleRules(each, judges, tasks),
  ]);
  return { findings: [...closedKeys(world, judges, tasks), ...findings, ...openKeys(world, tasks)] };
}

/** Every subject once: organizations, then groups, members and keys, each in the order of the ids. */
function subjectsOf(world: World): Linted[] {
  const holders = holdersOf(world);
  const innermost = ({ subjects }: Holder): Linted[] =>
    subjects.slice(-1).map((subject) => ({ subject, outer: subjects.slice(0, -1) }));
  return [
    ...[...world.organizations.values()].map(
      (organization): Linted => ({ subject: organizationSubject(organization), outer: [] }),
    ),
    ...[...world.groups.values()].map(({ id, name, rules, organizationId }): Linted => {
      const outer = [...world.organizations.values()].filter((each) => each.id === organizationId);
      return { subject: { scope: 'group', id, name, rules }, outer: outer.map(organizationSubject) };
    }),
    ...holders.filter(({ scope }) => scope === 'member').flatMap(innermost),
    ...holders.filter(({ scope }) => scope === 'key').flatMap(innermost),
  ];
}

const enforcedOf = (rules: Rules): WorldRule[] => rules.filter(({ mode }) => mode === 'enforce');

const without = (rules: Rules, rule: WorldRule): WorldRule[] => rules.filter(({ id }) => id !== rule.id);

const ofType = (rules: Rules, type: WorldRule['ruleType']): WorldRule[] =>
  rules.filter(({ ruleType }) => ruleType === type);

/** The sets of rules that are judged: each alone, from which the judge knows much of the others; all of them; all but one. */
const variantsOf = (rules: Rules): Rules[] => {
  const enforced = enforcedOf(rules);
  return [...enforced.map((rule) => [rule]), rules, ...enforced.map((rule) => without(rules, rule))];
};

/** Allow types of the rules on models, whatever attribute they look at: rules on addresses always let some pass. */
const ALLOW_TYPES = RULE_TYPES.filter((type) => effectOf(type) === 'allow' && kindOf(type) !== 'ip_cidrs');

/** Allow kinds that let nothing pass, so that the subject can call nothing. */
function emptyKinds(subject: WorldSubject, judges: Judges, tasks: SubjectTasks): LintFinding[] {
  const enforced = enforcedOf(subject.rules);
  return ALLOW_TYPES.flatMap((type) => {
    const rules = ofType(enforced, type);
    const isEmptyKind = rules.length > 0 && rules.every((rule) => isIdle(matchesOf(rule, judges, tasks)));
    if (!isEmptyKind) return [];
    const message = `: ${type} matches nothing that exists, so nothing can be called.`;
    return [finding('allow-matches-nothing', subject, rules, message)];
  });
}

const matchesOf = (rule: WorldRule, { mappings }: Judges, tasks: SubjectTasks): MatchedCells =>
  matchedBy(rule, tasks.of([rule]).before, mappings.slice(0, -FUTURE_MAPPINGS.length));

const isIdle = ({ positions, addresses }: MatchedCells): boolean => positions.length === 0 && isEmpty(addresses);

/** Rules without which everything stays as it is: dead when they match nothing, else shadowed. */
function idleRules({ subject, outer }: Linted, judges: Judges, tasks: SubjectTasks): LintFinding[] {
  const reach = (rules: Rules) =>
    reachOf(
      [...outer.map((each) => each.rules), rules].map((each) => tasks.of(each).before),
      judges.mappings.length,
    );
  const whole = reach(subject.rules);
  const enforced = enforcedOf(subject.rules);
  return enforced.flatMap((rule): LintFinding[] => {
    if (!isSameAccess(whole, reach(without(subject.rules, rule)))) return [];
    const matched = matchesOf(rule, judges, tasks);
    if (isIdle(matched)) return [finding('dead-rule', subject, [rule], ' matches nothing that exists.')];
    const peers = without(ofType(enforced, rule.ruleType), rule);
    const like = peers.filter((peer) => overlap(matched, matchesOf(peer, judges, tasks)));
    return [finding('shadowed-rule', subject, [rule], ` decides nothing, ${shadow(rule, like)}.`)];
  });
}

function shadow(rule: WorldRule, like: Rules): string {
  const same = like.filter((each) => contentOf(each) === contentOf(rule));
  if (same.length > 0) return `because ${idsOf(same)} says the same`;
  return like.length > 0 ? `because of ${idsOf(like)}` : 'because other rules already deny what it could';
}

const idsOf = (rules: Rules): string => rules.map(({ id, description }) => withName(id, description)).join(', ');

/** Whether the same cells are permitted: where no mapping is, addresses do not matter. */
const isSameAccess = (a: SubjectAccess, b: SubjectAccess): boolean =>
  differing(a.mappings, b.mappings).length === 0 &&
  differing(b.mappings, a.mappings).length === 0 &&
  (a.mappings.every((value) => value === 0) ||
    (isEmpty(subtract(a.addresses, b.addresses)) && isEmpty(subtract(b.addresses, a.addresses))));

/** Keys that can call nothing: what else is found of them matters little. Moderation, which model rules do not judge, does not count. */
function closedKeys(world: World, { mappings }: Judges, tasks: SubjectTasks): LintFinding[] {
  const called = mappings.flatMap((mapping, position) =>
    position < mappings.length - FUTURE_MAPPINGS.length && actionOf(mapping) !== 'moderation' ? [position] : [],
  );
  const isClosed = (access: SubjectAccess): boolean =>
    isEmpty(access.addresses) || called.every((position) => access.mappings[position] === 0);
  return holdersOf(world).flatMap(({ scope, id, name, subjects }) => {
    const accesses = subjects.map(({ rules }) => tasks.of(rules).before);
    if (scope !== 'key' || !isClosed(reachOf(accesses, mappings.length))) return [];
    const alone = subjects.filter(({ rules }) => isClosed(tasks.of(rules).before));
    const blamed = alone.length > 0 ? alone : subjects.filter(({ rules }) => enforcedOf(rules).length > 0);
    const whose = blamed.map((subject) => WHOSE[subject.scope](subject.name)).join(' and ');
    const why = ` reaches nothing: ${whose} let nothing through${blamed.length > 1 && alone.length === 0 ? ' together' : ''}.`;
    const ruleIds = blamed.flatMap(({ rules }) => enforcedOf(rules).map((rule) => rule.id));
    return [{ ...finding('reaches-nothing', { scope, id, name }, [], why), ruleIds }];
  });
}

const WHOSE: Readonly<Record<WorldSubject['scope'], (name: string) => string>> = {
  organization: () => 'the rules of the organization',
  group: (name) => `the rules of the group ${name}`,
  member: () => 'the rules of its owner',
  key: () => 'its own rules',
};

/** Keys that may call whatever model of whatever provider at whatever price: with the catalogue their access grows. */
function openKeys(world: World, tasks: SubjectTasks): LintFinding[] {
  const passesFuture = (rules: Rules): boolean =>
    tasks
      .of(rules)
      .before.mappings.slice(-FUTURE_MAPPINGS.length)
      .every((value) => value === 1);
  return holdersOf(world)
    .filter(({ scope, subjects }) => scope === 'key' && subjects.every(({ rules }) => passesFuture(rules)))
    .map(({ id, name }) =>
      finding(
        'open-to-future-models',
        { scope: 'key', id, name },
        [],
        ' is open to every model that the catalogue gains.',
      ),
    );
}

/** Possible meanings of rule entries. */
interface LintedNames {
  readonly catalog: Catalog;
  /** Mappings of custom models. */
  readonly custom: readonly Mapping[];
  /** Names of mappings, in the catalogue and custom. */
  readonly known: KnownNames;
}

/** Entries of rules, in either mode, that neither the catalogue nor a custom model has, or that are served no more. */
function entryFindings({ catalog, custom, known }: LintedNames, subject: WorldSubject): LintFinding[] {
  const mappings = [...catalog.mappings(), ...custom];
  const isServed = ({ id, custom: isCustom }: Mapping): boolean => isCustom || catalog.resolve(id)?.length === 1;
  return subject.rules.flatMap((rule) =>
    byList<LintFinding[]>(
      rule,
      {
        models: (models) =>
          models.flatMap((entry) =>
            known.hasModel(entry)
              ? deactivatedFinding(mappings, isServed, subject, rule, entry)
              : [unknownModel(known, subject, rule, entry)],
          ),
        providers: (providers) =>
          providers
            .filter((entry) => !known.hasProvider(entry))
            .map((entry) => unknownProvider(known, subject, rule, entry)),
        ip_cidrs: () => [],
        tags: (tags) =>
          tags.filter((entry) => !known.hasTag(entry)).map((entry) => unknownTag(known, subject, rule, entry)),
      },
      [],
    ),
  );
}

function unknownProvider(known: KnownNames, subject: WorldSubject, rule: WorldRule, entry: string): LintFinding {
  const message = `: "${entry}" is not a provider that serves a model${didYouMean(known.nearestProvider(entry))}`;
  return finding('unknown-provider', subject, [rule], message);
}

function unknownTag(known: KnownNames, subject: WorldSubject, rule: WorldRule, entry: string): LintFinding {
  const message = entry.endsWith('*') ? 'begins no tag' : 'is not a tag';
  const end = didYouMean(known.nearestTag(entry));
  return finding('unknown-tag', subject, [rule], `: "${entry}" ${message} that a model has${end}`);
}

function unknownModel(known: KnownNames, subject: WorldSubject, rule: WorldRule, entry: string): LintFinding {
  if (known.isAlias(entry)) {
    const name = entry.endsWith('*') ? 'begins the name of an alias only' : 'is an alias';
    return finding(
      'unknown-model',
      subject,
      [rule],
      `: "${entry}" ${name}; rules judge models, so it matches nothing.`,
    );
  }
  const message = entry.endsWith('*') ? 'begins no name of a model' : 'is not the name of a model';
  const end = didYouMean(known.nearestModel(entry));
  return finding('unknown-model', subject, [rule], `: "${entry}" ${message} in the catalogue${end}`);
}

function deactivatedFinding(
  mappings: readonly Mapping[],
  isServed: (mapping: Mapping) => boolean,
  subject: WorldSubject,
  rule: WorldRule,
  entry: string,
): LintFinding[] {
  const prefix = entry.endsWith('*') ? entry.slice(0, -1) : undefined;
  const isMeant = (name: string): boolean => (prefix === undefined ? name === entry : name.startsWith(prefix));
  if (mappings.some((mapping) => mapping.names.some(isMeant) && isServed(mapping))) return [];
  return [finding('deactivated-model', subject, [rule], `: "${entry}" means models that are deactivated.`)];
}

interface Listed {
  readonly rule: WorldRule;
  readonly range: string;
}

/** Ranges of one subject and effect that lie in others, or that two rules list: they say what another one says already. */
function rangeFindings(subject: WorldSubject): LintFinding[] {
  return (['allow_ip_cidrs', 'deny_ip_cidrs'] as const).flatMap((type) => {
    const listed = subject.rules.flatMap((rule): Listed[] =>
      rule.ruleType === type && rule.mode === 'enforce' ? entriesOf(rule).map((range) => ({ rule, range })) : [],
    );
    return listed.flatMap((inner, index) => {
      const outer = listed.find((other, at) => at !== index && covers(other.range, inner.range, at < index));
      if (outer === undefined) return [];
      const rules = inner.rule.id === outer.rule.id ? [inner.rule] : [inner.rule, outer.rule];
      const message =
        inner.range === outer.range ? ` both list ${inner.range}.` : `: ${inner.range} lies in ${outer.range}.`;
      return [finding('overlapping-ranges', subject, rules, message)];
    });
  });
}

/** Whether one range covers another. If two rules have equal ranges, only the first covers the other. */
function covers(outerText: string, innerText: string, first: boolean): boolean {
  if (outerText === innerText) return first;
  const [outer, inner] = [parseRange(outerText), parseRange(innerText)];
  const [wide, narrow] = [intervalOf(outer), intervalOf(inner)];
  return outer.family === inner.family && wide.first <= narrow.first && narrow.last <= wide.last;
}

/** A finding about a subject, or about rules of it. @param said goes on from their names: ` matches nothing.`, `: "x" is unknown.` */
function finding(
  code: LintFinding['code'],
  { scope, id, name }: Omit<WorldSubject, 'rules'>,
  rules: readonly Pick<WorldRule, 'id' | 'description'>[],
  said: string,
): LintFinding {
  const named = rules.map((rule) => withName(rule.id, rule.description)).join(', ');
  const about =
    rules.length === 0
      ? `The ${scope} ${name === '' ? id : withName(name, id)}`
      : `The rule${rules.length === 1 ? '' : 's'} ${named}`;
  return {
    code,
    scope,
    subjectId: id,
    subjectName: name,
    ruleIds: rules.map((rule) => rule.id),
    message: `${about}${said}`,
  };
}
