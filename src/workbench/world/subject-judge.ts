import { actionOf } from '../../core/operations.ts';
import { listInputs } from '../../core/reachable.ts';
import { type AddressRange, parseRange } from '../../domain/address.ts';
import { effectOf, entriesOf, factsOf, kindOf, type PolicyRule } from '../../domain/iam-rule.ts';
import { type Mapping, mappingNames, type Prices, TEXT_ONLY } from '../../domain/model.ts';
import type { PolicyInput, PolicySubject, PolicyViolation } from '../../generated/types.ts';
import { compileSubjectRules, type DataDocument, dataDocument } from '../../policy/data-document.ts';
import { type CandidateAttribute, inputDocument } from '../../policy/input-document.ts';
import type { Pdp } from '../../policy/pdp.ts';
import {
  type AddressSet,
  addressClasses,
  EVERY_ADDRESS,
  intersect,
  isEmpty,
  NO_ADDRESS,
  subtract,
  union,
} from './address-classes.ts';

/**
 * Access that the enforced rules of one subject, alone, let through. A call passes when its mapping and its address are both
 * permitted: IP rules do not look at mappings, and the other rules not at addresses, so the two are judged apart.
 */
export interface SubjectAccess {
  /** 1 where the mapping of that position is permitted. */
  readonly mappings: Uint8Array;
  readonly addresses: AddressSet;
}

export interface SubjectJudge {
  readonly mappings: readonly Mapping[];
  /** @throws PolicyFailure */
  access(rules: readonly PolicyRule[]): SubjectAccess;
  /** The policy's violations for these mappings, by the rules that do not look at addresses. @throws PolicyFailure */
  mappingViolations(rules: readonly PolicyRule[], positions: readonly number[]): Map<number, PolicyViolation[]>;
  /** The policy's violations for an address, null for the unknown one, by the IP rules. @throws PolicyFailure */
  addressViolations(rules: readonly PolicyRule[], address: string | null): PolicyViolation[];
}

const SUBJECT = { scope: 'key', id: 'subject' } as const;

export const isIpRule = ({ ruleType }: PolicyRule): boolean => kindOf(ruleType) === 'ip_cidrs';

export const rangesOf = (rules: readonly PolicyRule[]): AddressRange[] =>
  rules.filter(isIpRule).flatMap((rule) => entriesOf(rule).map(parseRange));

/** IP rules judge every candidate alike, so any one is enough, and one that is always there. */
export const addressInput = (address: string | null, subjects: readonly PolicySubject[]): PolicyInput =>
  inputDocument('chat', address, subjects, FUTURE_MAPPINGS.slice(0, 1));

const judgedDocument = (rules: readonly PolicyRule[]): DataDocument =>
  dataDocument([{ id: SUBJECT.id, rules: compileSubjectRules(rules) }]);

/** Judges by the compiled policy, through the same documents as a call; remembers what it was asked. */
export function createSubjectJudge(pdp: Pdp, mappings: readonly Mapping[]): SubjectJudge {
  // No rule looks at the id of a candidate, and the policy's time grows with its length.
  const numbered = mappings.map((mapping, position) => ({ ...mapping, id: String(position) }));
  const inputs = listInputs({ subjects: [SUBJECT], clientIp: null }, numbered);
  const knownMappings = new Map<string, Uint8Array>();
  const knownAddresses = new Map<string, AddressSet>();

  function judgeMappings(rules: readonly PolicyRule[]): Uint8Array {
    const known = knownBySections(rules);
    if (known !== undefined) return known;
    const permitted = new Uint8Array(mappings.length);
    const data = judgedDocument(rules);
    for (const input of inputs) for (const id of pdp.permitted(input, data)) permitted[Number(id)] = 1;
    return permitted;
  }

  /** Kinds and effects are judged apart too (a violation is of one of them), so what is known of each need not be asked again. */
  function knownBySections(rules: readonly PolicyRule[]): Uint8Array | undefined {
    const sections = [...Map.groupBy(rules, ({ ruleType }) => ruleType).values()];
    const known = sections.map((section) => knownMappings.get(ruleContents(section).key));
    const [first, ...others] = known;
    if (first === undefined || others.includes(undefined)) return undefined;
    return others.reduce<Uint8Array>(
      (all, each) => all.map((value, position) => value & (each?.[position] ?? 0)),
      first,
    );
  }

  function judgeAddresses(rules: readonly PolicyRule[]): AddressSet {
    if (rules.length === 0) return EVERY_ADDRESS;
    const data = judgedDocument(rules);
    const passing = addressClasses(rangesOf(rules)).filter(
      ({ representative }) => pdp.permitted(addressInput(representative, [SUBJECT]), data).length > 0,
    );
    return union(passing.map(({ addresses }) => addresses));
  }

  return {
    mappings,
    access(rules) {
      const enforced = ruleContents(rules).rules;
      const [ofMappings, ofAddresses] = [enforced.filter((rule) => !isIpRule(rule)), enforced.filter(isIpRule)];
      return {
        mappings: remembered(knownMappings, ofMappings, judgeMappings),
        addresses: remembered(knownAddresses, ofAddresses, judgeAddresses),
      };
    },
    mappingViolations(rules, judged) {
      const data = judgedDocument(rules.filter((rule) => rule.mode === 'enforce' && !isIpRule(rule)));
      const found = new Map<number, PolicyViolation[]>(judged.map((position) => [position, []]));
      const asked = numbered.filter((_, position) => found.has(position));
      for (const input of listInputs({ subjects: [SUBJECT], clientIp: null }, asked)) {
        for (const violation of pdp.decide(input, data).violations) {
          found.get(Number(violation.candidate))?.push(violation);
        }
      }
      return found;
    },
    addressViolations(rules, address) {
      const data = judgedDocument(rules.filter((rule) => rule.mode === 'enforce' && isIpRule(rule)));
      return pdp.decide(addressInput(address, [SUBJECT]), data).violations;
    },
  };
}

function remembered<T>(
  known: Map<string, T>,
  rules: readonly PolicyRule[],
  judge: (rules: readonly PolicyRule[]) => T,
): T {
  const { key } = ruleContents(rules);
  const found = known.get(key) ?? judge(rules);
  known.set(key, found);
  return found;
}

/** Cells that flip for one reason. Rules are named by their ids, on the side where they stand. */
export interface Cause<Cells> {
  readonly change: 'gained' | 'lost';
  readonly cells: Cells;
  readonly before: readonly string[];
  readonly after: readonly string[];
}

/** Change of one subject's rules, judged alone. */
export interface SubjectChange {
  readonly before: SubjectAccess;
  readonly after: SubjectAccess;
  /** By position. */
  readonly mappingCauses: readonly Cause<readonly number[]>[];
  readonly addressCauses: readonly Cause<AddressSet>[];
}

type Rules = readonly PolicyRule[];

/** Judges both sides, and says of everything that flips which rules are responsible. @throws PolicyFailure */
export function subjectChange(judge: SubjectJudge, before: Rules, after: Rules): SubjectChange {
  const [was, is] = [judge.access(before), judge.access(after)];
  return {
    before: was,
    after: is,
    mappingCauses: [
      ...mappingCauses(judge, { change: 'gained', before, after }, differing(was.mappings, is.mappings)),
      ...mappingCauses(judge, { change: 'lost', before, after }, differing(is.mappings, was.mappings)),
    ],
    addressCauses: addressCauses(judge, before, after, was.addresses, is.addresses),
  };
}

/** Positions where the second is set and the first is not. */
export function differing(without: Uint8Array, having: Uint8Array): number[] {
  const positions: number[] = [];
  for (const [position, value] of having.entries())
    if (value === 1 && without[position] !== 1) positions.push(position);
  return positions;
}

function mappingCauses(judge: SubjectJudge, flip: Flip, flipped: readonly number[]): Cause<number[]>[] {
  if (flipped.length === 0) return [];
  const groups = new Map<string, { rules: Responsible; cells: number[] }>();
  for (const [position, violations] of judge.mappingViolations(denyingSide(flip), flipped)) {
    const matches = (rule: PolicyRule): boolean => judge.access([rule]).mappings[position] === 1;
    const rules = responsible(flip, violations, matches);
    const key = JSON.stringify(rules);
    const group = groups.get(key) ?? { rules, cells: [] };
    groups.set(key, group);
    group.cells.push(position);
  }
  return [...groups.values()].map(({ rules, cells }) => ({ change: flip.change, cells, ...sides(flip.change, rules) }));
}

function addressCauses(
  judge: SubjectJudge,
  before: Rules,
  after: Rules,
  was: AddressSet,
  is: AddressSet,
): Cause<AddressSet>[] {
  const groups = new Map<string, { change: 'gained' | 'lost'; rules: Responsible; cells: AddressSet[] }>();
  for (const { representative, addresses } of addressClasses(rangesOf([...before, ...after]))) {
    const lies = (set: AddressSet): boolean => !isEmpty(intersect(set, addresses));
    if (lies(was) === lies(is)) continue;
    const change = lies(is) ? 'gained' : 'lost';
    const flip: Flip = { change, before, after };
    const matches = (rule: PolicyRule): boolean => lies(judge.access([rule]).addresses);
    const rules = responsible(flip, judge.addressViolations(denyingSide(flip), representative), matches);
    const key = JSON.stringify([change, rules]);
    const group = groups.get(key) ?? { change, rules, cells: [] };
    groups.set(key, group);
    group.cells.push(addresses);
  }
  return [...groups.values()].map(({ change, rules, cells }) => ({
    change,
    cells: union(cells),
    ...sides(change, rules),
  }));
}

interface Responsible {
  readonly denying: readonly string[];
  readonly permitting: readonly string[];
}

interface Flip {
  readonly change: 'gained' | 'lost';
  readonly before: Rules;
  readonly after: Rules;
}

const denyingSide = ({ change, before, after }: Flip): Rules => (change === 'gained' ? before : after);
const permittingSide = ({ change, before, after }: Flip): Rules => (change === 'gained' ? after : before);

/**
 * Which rules made the difference: with those as they were before, the cell is as it was. A deny rule that matches on the denying
 * side no longer does on the other one. Where none of the allow rules matched, either the permitting side has one that does, or
 * it has no allow rule of that kind at all.
 */
function responsible(
  flip: Flip,
  violations: readonly PolicyViolation[],
  matches: (rule: PolicyRule) => boolean,
): Responsible {
  const [denying, permitting] = [denyingSide(flip), permittingSide(flip)];
  const permittingContents = new Set(permitting.map(contentOf));
  const found = { denying: new Set<string>(), permitting: new Set<string>() };
  for (const { effect, kind, ruleIds } of violations) {
    const allowing = permitting.filter(
      ({ ruleType }) => effect === 'allow' && effectOf(ruleType) === 'allow' && kindOf(ruleType) === kind,
    );
    const matching = allowing.filter(matches);
    for (const { id } of matching) found.permitting.add(id);
    const violated = denying.filter(({ id }) => ruleIds.includes(id));
    const restricts = violated.some((rule) => permittingContents.has(contentOf(rule)));
    // Without the new rule that matches, a kind that kept none of its old ones would not restrict at all.
    if (matching.length > 0 && (flip.change === 'lost' || restricts)) continue;
    for (const { id } of violated) found.denying.add(id);
  }
  return { denying: [...found.denying].sort(), permitting: [...found.permitting].sort() };
}

const sides = (change: 'gained' | 'lost', { denying, permitting }: Responsible) =>
  change === 'gained' ? { before: denying, after: permitting } : { before: permitting, after: denying };

/**
 * Content of a subject's enforced rules, without their ids: subjects with equal contents are judged once. Rules of equal
 * content are one, and the id of each is its position.
 */
interface RuleContents {
  /** Equal for equal contents. */
  readonly key: string;
  readonly rules: readonly PolicyRule[];
  /** The rules that say what the content at a position says, sorted. */
  readonly idsAt: (position: string) => readonly string[];
}

const known = new WeakMap<readonly PolicyRule[], RuleContents>();

/** The contents of a list of rules, which must not change. */
export function ruleContents(rules: readonly PolicyRule[]): RuleContents {
  const found = known.get(rules);
  if (found !== undefined) return found;
  const contents = contentsOf(rules);
  known.set(rules, contents);
  return contents;
}

function contentsOf(rules: readonly PolicyRule[]): RuleContents {
  const enforced = rules.filter(({ mode }) => mode === 'enforce');
  const byContent = [...Map.groupBy(enforced, contentOf)].sort(([a], [b]) => (a < b ? -1 : 1));
  return {
    key: byContent.map(([content]) => content).join('\n'),
    rules: byContent.flatMap(([, same], position) =>
      same.slice(0, 1).map((rule): PolicyRule => ({ ...rule, id: String(position) })),
    ),
    idsAt: (position) => (byContent[Number(position)]?.[1] ?? []).map(({ id }) => id).sort(),
  };
}

/** Equal for rules that do the same. */
export function contentOf(rule: PolicyRule): string {
  const isList = factsOf(rule.ruleType).list !== null;
  return JSON.stringify([rule.ruleType, (isList ? entriesOf(rule) : Object.entries(rule.ruleValue)).toSorted()]);
}

/** Mappings and addresses that one rule matches. */
export interface MatchedCells {
  /** Positions of mappings; empty for an IP rule. */
  readonly positions: readonly number[];
  /** None for any other rule. */
  readonly addresses: AddressSet;
}

/**
 * Finds the matches of a rule by its effect alone: an allow rule lets pass what it matches, a deny rule everything else.
 * @param access of a subject with this rule only
 */
export function matchedBy(rule: PolicyRule, access: SubjectAccess, mappings: readonly Mapping[]): MatchedCells {
  const allows = effectOf(rule.ruleType) === 'allow';
  if (isIpRule(rule)) {
    return { positions: [], addresses: allows ? access.addresses : subtract(EVERY_ADDRESS, access.addresses) };
  }
  const positions = mappings.flatMap((mapping, position) =>
    judgesMapping(rule, mapping) && (access.mappings[position] === 1) === allows ? [position] : [],
  );
  return { positions, addresses: NO_ADDRESS };
}

/** A rule of a kind that does not judge moderations lets every one pass and decides nothing. */
export const judgesMapping = ({ ruleType }: PolicyRule, mapping: Mapping): boolean =>
  actionOf(mapping) !== 'moderation' || factsOf(ruleType).judgesModeration;

export const overlap = (a: MatchedCells, b: MatchedCells): boolean =>
  new Set(a.positions).intersection(new Set(b.positions)).size > 0 || !isEmpty(intersect(a.addresses, b.addresses));

/** No rule can mean them but by `*`, `-*` and the like. */
const NAMES = { provider: '-a-provider-to-come', model: '-a-model-to-come', tag: '-a-tag-to-come' } as const;
const PICO_PER_USD = 1_000_000_000_000n;

/** Possible differences between mappings: one list for attributes that go together. */
type Variants = readonly Partial<Mapping>[];

const priced = (prices: Prices): Partial<Mapping> => ({ prices });

/** At every kind of price: unknown, nothing, next to nothing, and more than any maximum. */
const PRICES: Variants = [
  priced({}),
  priced({ prompt: 0n, completion: 0n }),
  priced({ prompt: 1n, completion: 1n }),
  priced({ prompt: 10n * PICO_PER_USD, completion: 10n * PICO_PER_USD }),
];

/** Variants in which each attribute that rules may look at takes every kind of value. */
const VARIANTS: Readonly<Record<CandidateAttribute, Variants>> = {
  input_price: PRICES,
  output_price: PRICES,
  tags: [{ tags: [] }, { tags: [NAMES.tag] }],
};

const EVERY_VARIANT = [...new Set(Object.values(VARIANTS))].reduce<Variants>(
  (all, variants) => all.flatMap((one) => variants.map((other) => ({ ...one, ...other }))),
  [{}],
);

/** Possible future entries of the catalogue: models that no rule names, of a provider that none names. */
export const FUTURE_MAPPINGS: readonly Mapping[] = EVERY_VARIANT.map((variant, index) => {
  const [providerId, modelId] = [NAMES.provider, `${NAMES.model}-${index}`];
  return {
    id: `${providerId}/${modelId}`,
    providerId,
    modelId,
    externalId: modelId,
    custom: false,
    names: mappingNames({ providerId, modelId, externalId: modelId }, []),
    providerNames: [providerId],
    prices: {},
    freeFlag: false,
    ...TEXT_ONLY,
    ...variant,
  };
});
