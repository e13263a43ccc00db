import { timeOfNumber } from '../../domain/id.ts';
import type { Mapping } from '../../domain/model.ts';
import { canonicalRule } from '../../domain/rule-content.ts';
import { formatTime } from '../../domain/time.ts';
import type { DraftRule, RuleCreate } from '../../generated/types.ts';
import { validator } from '../../lib/schemas.ts';
import { counted } from '../../lib/text.ts';
import type { Pdp } from '../../policy/pdp.ts';
import type { Database } from '../../store/db/database.ts';
import type { CallFilter } from '../../store/ledger/call-log.ts';
import { decisionIds } from '../../store/ledger/logged-verdicts.ts';
import { type AlikeCalls, gatherUse, judgeUse, type PermittedUse, type Use } from '../replay/alike-calls.ts';
import type { SubjectsOf } from '../replay/judge-again.ts';
import { addressesOf, formatRanges } from '../world/address-classes.ts';
import { credentialsIn, mappingsOf } from '../world/candidates.ts';
import { holdersOf, reachOf } from '../world/holders.ts';
import { contentOf, createSubjectJudge } from '../world/subject-judge.ts';
import { keySubjects, memberSubjects, type World, type WorldRule } from '../world/world.ts';
import { applyDrafts } from './drafts.ts';

const validateRuleCreate = validator('RuleCreate');

interface TightenScope {
  /** Epoch ms, `to` exclusive. */
  readonly from: number;
  readonly to: number;
  /** Whether client addresses are to be bound too. */
  readonly addresses: boolean;
}

/** Number used, and number that the subject reaches now. */
export interface ReachUse {
  readonly used: number;
  readonly reachable: number;
}

/** Some calls, and the decisions of the first of them. */
interface Calls {
  readonly calls: number;
  readonly decisionIds: readonly string[];
}

/** The tightest rules for the use that was seen. */
export interface TighterRules {
  /** The calls that are the use. */
  readonly calls: number;
  /** When the first of them was made, RFC 3339; null: there are none. */
  readonly since: string | null;
  /** Calls that the current rules do not permit any more: they are no use. */
  readonly denied: Calls;
  readonly models: ReachUse;
  readonly providers: ReachUse;
  /** Empty where the current rules are as tight. */
  readonly draft: readonly DraftRule[];
  /** Why something is not proposed. */
  readonly notes: readonly string[];
  /** Calls that would not be permitted with the draft: none, or it must not be used. */
  readonly lost: Calls;
}

const MOST_DECISIONS = 20;

/**
 * Proposes rules of a subject that permit the models and providers of its calls, and no others, and judges these calls again by
 * them. Rules of a kind are a union, so enforced allow rules of a kind that is proposed are replaced; nothing is permitted that was
 * not. @throws PolicyFailure
 */
export function tighten(
  db: Database,
  pdp: Pdp,
  world: World,
  subject: TightenSubject,
  { from, to, addresses }: TightenScope,
): TighterRules {
  const { organizationId } = subject;
  const seen = gatherUse(db, { organizationId, from, to, ...subject.filter }).filter(subject.isCaller);
  const now = judgeUse(db, { pdp, subjectsOf: callersOf(world, seen) }, seen);
  const uses = now.permitted.map(({ use }) => use);
  const mappings = mappingsOf(world, organizationId);
  const judge = createSubjectJudge(pdp, mappings);
  const passes = judge.access(subject.rules).mappings;
  const proposed = proposal(now.permitted, (name, providers) =>
    mappings.some(
      (mapping, position) =>
        mapping.names.includes(name) &&
        mapping.providerNames.some((provider) => providers.has(provider)) &&
        passes[position] !== 1,
    ),
  );
  const [ofAddresses, addressNotes] = addresses ? addressRules(now.permitted) : [[], []];
  const wanted = [...proposed, ...pricingRules(subject, now.permitted), ...ofAddresses];
  const rules = wanted.filter((rule) => validateRuleCreate(rule));
  const tooLong = wanted
    .filter((rule) => !rules.includes(rule))
    .map(({ ruleType }) => `${ruleType} is left out: it would have more entries than a rule can hold.`);
  const draft = rules.flatMap((rule) => changesTo(subject, rule));
  const drafted = applyDrafts(world, draft);
  const { lost } = judgeUse(db, { pdp, subjectsOf: callersOf(drafted, uses) }, uses);
  const calls = (some: readonly Use[]): Calls => ({
    calls: sumOf(some),
    decisionIds: firstDecisions(db, organizationId, some),
  });
  const reached = reachedBy(world, subject, judge);
  const candidates = now.permitted.flatMap((each) => each.candidates);
  const first = uses.reduce((least, use) => Math.min(least, use.first), Number.POSITIVE_INFINITY);
  return {
    calls: sumOf(uses),
    since: uses.length === 0 ? null : formatTime(timeOfNumber(first)),
    denied: calls(now.lost),
    models: {
      used: new Set(candidates.map(modelName)).size,
      reachable: new Set(reached.map(modelName)).size,
    },
    providers: {
      used: new Set(candidates.map(providerName)).size,
      reachable: new Set(reached.map(({ providerId }) => providerId)).size,
    },
    draft,
    notes: [...addressNotes, ...tooLong],
    lost: calls(lost),
  };
}

const sumOf = (uses: readonly Use[]): number => uses.reduce((sum, { calls }) => sum + calls, 0);

function firstDecisions(db: Database, organizationId: string, uses: readonly Use[]): string[] {
  const numbers = uses.map(({ first }) => first).sort((a, b) => a - b);
  const shown = numbers.slice(0, MOST_DECISIONS);
  const ids = decisionIds(db, organizationId, shown);
  return shown.flatMap((number) => ids.get(number) ?? []);
}

/** Subjects whose rules calls meet: those of the key; if the key is gone, those of a new key of its owner. */
function callersOf(world: World, uses: readonly Use[]): SubjectsOf {
  const owners = new Map(uses.map(({ keyId, memberId }) => [keyId, memberId]));
  return (keyId) => {
    const key = world.keys.get(keyId);
    if (key !== undefined) return keySubjects(world, key);
    const member = world.members.get(owners.get(keyId) ?? '');
    return member === undefined ? undefined : memberSubjects(world, member, keyId);
  };
}

/** Finds the mappings that callers under the subject's rules can call now. */
function reachedBy(
  world: World,
  { id }: TightenSubject,
  judge: ReturnType<typeof createSubjectJudge>,
): readonly Mapping[] {
  const { mappings } = judge;
  const hasCredential = credentialsIn(world);
  const reaches = holdersOf(world)
    .filter(({ subjects }) => subjects.some((subject) => subject.id === id))
    .map((holder) => {
      const scopes = holder.subjects.map(({ rules }) => judge.access(rules));
      return { holder, reach: reachOf(scopes, mappings.length).mappings };
    });
  return mappings.filter((mapping, position) =>
    reaches.some(({ holder, reach }) => reach[position] === 1 && hasCredential(holder, mapping)),
  );
}

/** A candidate, or a mapping. */
interface Named {
  readonly id: string;
  readonly names: readonly string[];
}

/** The canonical id, or the only name of a custom model. */
function modelName({ id, names }: Named): string {
  const model = id.slice(id.indexOf('/') + 1);
  return names.includes(model) ? model : id;
}

/** `custom:<name>` for a custom provider: the last of the names means it alone. */
const providerName = ({ provider_names: names }: PermittedUse['candidates'][number]): string => names.at(-1) ?? '';

/** @param isWider whether a name of a model, at these providers, would permit what the subject's current rules do not */
function proposal(
  uses: readonly PermittedUse[],
  isWider: (name: string, providers: ReadonlySet<string>) => boolean,
): RuleCreate[] {
  const candidates = uses.flatMap((each) => each.candidates);
  const providers = new Set(candidates.map(providerName));
  const models = new Map(candidates.map((candidate) => [candidate.id, modelName(candidate)]));
  const wider = new Set([...new Set(models.values())].filter((name) => isWider(name, providers)));
  const entries = [...models].map(([id, name]) => (wider.has(name) ? id : name));
  return candidates.length === 0
    ? []
    : [
        { ruleType: 'allow_models', ruleValue: { models: sorted(entries) } },
        { ruleType: 'allow_providers', ruleValue: { providers: sorted([...providers]) } },
      ];
}

const sorted = (entries: readonly string[]): string[] => [...new Set(entries)].sort();

/**
 * Drafts a rule for free models if everything served was free, and no rule requires that yet. Prices are ignored for
 * moderations.
 */
function pricingRules({ rules }: TightenSubject, uses: readonly PermittedUse[]): RuleCreate[] {
  const priced = uses.filter(({ action }) => action !== 'moderation').flatMap((each) => each.candidates);
  const isFree = priced.length > 0 && priced.every(({ free }) => free);
  const isBound = rules.some(({ ruleType, mode }) => ruleType === 'allow_pricing' && mode === 'enforce');
  return isFree && !isBound ? [{ ruleType: 'allow_pricing', ruleValue: { pricingType: 'free' } }] : [];
}

function addressRules(uses: readonly PermittedUse[]): [rules: RuleCreate[], notes: string[]] {
  const unknown = uses.filter(({ client_ip: address }) => address === null).map(({ use }) => use);
  if (unknown.length > 0) {
    return [[], [`allow_ip_cidrs is left out: the client address of ${counted(sumOf(unknown), 'call')} is unknown.`]];
  }
  const ipCidrs = formatRanges(addressesOf(uses.flatMap(({ client_ip: address }) => address ?? [])));
  return [ipCidrs.length === 0 ? [] : [{ ruleType: 'allow_ip_cidrs', ruleValue: { ipCidrs } }], []];
}

/** The rule in place of the enforced ones of its type; nothing where it stands there already. */
function changesTo({ owner, rules }: TightenSubject, rule: RuleCreate): DraftRule[] {
  const present = rules.filter(({ ruleType, mode }) => ruleType === rule.ruleType && mode === 'enforce');
  const content = contentOf({ ...canonicalRule(rule), id: '', mode: 'enforce' });
  if (present.length === 1 && present.every((each) => contentOf(each) === content)) return [];
  return [...present.map(({ id }): DraftRule => ({ id, remove: true })), { ...owner, ...rule }];
}

/** Subject whose rules are tightened. */
export interface TightenSubject {
  readonly id: string;
  readonly organizationId: string;
  /** For people: `the key CI`. */
  readonly name: string;
  readonly rules: readonly WorldRule[];
  /** Owner of a rule, as a draft names it. */
  readonly owner: Pick<DraftRule, 'key' | 'member' | 'group'>;
  /** Calls that may be its own, as the log tells them. */
  readonly filter: Pick<CallFilter, 'keyId' | 'memberId'>;
  /** Whether its rules bind the caller: for a group, who is in it now. */
  isCaller(call: Pick<AlikeCalls, 'keyId' | 'memberId'>): boolean;
}

/**
 * The key, member or group that a person means.
 * @param reference an id, the description of a key, an e-mail or the name of a group. @throws Error for none or several
 */
export function findTightenSubject(world: World, reference: string): TightenSubject {
  const meant = [...keysMeant(world, reference), ...membersMeant(world, reference), ...groupsMeant(world, reference)];
  const [subject] = meant;
  if (subject === undefined) throw new Error(`There is no key, member or group "${reference}".`);
  if (meant.length > 1) throw new Error(`"${reference}" matches several: ${meant.map(({ id }) => id).join(', ')}.`);
  return subject;
}

function keysMeant({ keys }: World, reference: string): TightenSubject[] {
  const named = [...keys.values()].filter(({ description }) => description === reference);
  const meant = keys.get(reference);
  return (meant === undefined ? named : [meant]).map(({ id, organizationId, description, rules }) => ({
    ...{ id, organizationId, rules },
    name: `the key ${description}`,
    owner: { key: reference },
    filter: { keyId: id },
    isCaller: ({ keyId }) => keyId === id,
  }));
}

const membersMeant = ({ members }: World, reference: string): TightenSubject[] =>
  [...members.values()]
    .filter(({ id, email }) => id === reference || email === reference.toLowerCase())
    .map(({ id, organizationId, email, rules }) => ({
      ...{ id, organizationId, rules },
      name: `the member ${email}`,
      owner: { member: email },
      filter: { memberId: id },
      isCaller: ({ memberId }) => memberId === id,
    }));

const groupsMeant = ({ groups }: World, reference: string): TightenSubject[] =>
  [...groups.values()]
    .filter(({ id, name }) => id === reference || name === reference)
    .map(({ id, organizationId, name, holderIds, rules }) => ({
      ...{ id, organizationId, rules },
      name: `the group ${name}`,
      owner: { group: name },
      filter: {},
      isCaller: ({ keyId, memberId }) => holderIds.has(keyId) || holderIds.has(memberId),
    }));
