import { hash } from 'node:crypto';
import { canonicalCidr } from '../domain/address.ts';
import { byKind, kindOf, type PolicyRule, type RuleKind, type StoredPricingValue } from '../domain/iam-rule.ts';
import { parseUsdPerMillion } from '../domain/limits.ts';
import type { RuleType } from '../generated/types.ts';
import { validator } from '../lib/schemas.ts';

const validateSubjectRules = validator('SubjectRules');

export interface DataDocument {
  /** JSON text of a `PolicyData`. */
  readonly text: string;
  /** SHA-256 of the text, hex. */
  readonly digest: string;
}

/**
 * The rules of one subject as `SubjectRules` (schemas/policy/data.json): JSON text, a pure function of the active rules, in
 * whatever order they come.
 * @throws PolicyFailure for rules that admin would not have stored: their subject cannot be judged.
 */
export function compileSubjectRules(rules: readonly PolicyRule[]): string {
  const ids = new Set(rules.map((rule) => rule.id));
  if (ids.size !== rules.length || ids.has('')) throw new PolicyFailure('Rule ids must be unique and not empty.');
  const enforced = rules.filter((rule) => rule.mode === 'enforce');
  const reported = rules.filter((rule) => rule.mode === 'report');
  if (enforced.length + reported.length !== rules.length) throw new PolicyFailure('A rule has an unknown mode.');
  const subject = new Map<string, Canonical>([['enforce', ruleSet(enforced)]]);
  if (reported.length > 0) {
    subject.set('shadow', ruleSet(rules));
    subject.set('report_rules', new Map<string, true>(reported.map((rule) => [rule.id, true])));
  }
  return canonicalJson(subject);
}

/** A subject with its compiled rules, or with what stands for them. */
interface SubjectText {
  readonly id: string;
  readonly rules: string;
}

/** The pieces of which the text of a data document is made; each subject's rules are one. @throws PolicyFailure when a subject comes twice. */
export function documentPieces(subjects: readonly SubjectText[]): string[] {
  const sorted = [...subjects].sort((a, b) => (a.id < b.id ? -1 : 1));
  const pieces = ['{"subjects":{'];
  let previous: string | null = null;
  for (const { id, rules } of sorted) {
    if (id === previous) throw new PolicyFailure(`The subject "${id}" comes twice.`);
    pieces.push(`${previous === null ? '' : ','}${JSON.stringify(id)}:`, rules);
    previous = id;
  }
  pieces.push('}}');
  return pieces;
}

/** The data document of some subjects, each with its compiled rules. @throws PolicyFailure when a subject comes twice. */
export function dataDocument(subjects: readonly SubjectText[]): DataDocument {
  const text = documentPieces(subjects).join('');
  return { text, digest: hash('sha256', text) };
}

/** Values that canonical texts are made of. Objects are maps, so that no key (`__proto__`) can vanish into a prototype. */
export type Canonical = string | number | true | readonly Canonical[] | ReadonlyMap<string, Canonical>;

/** JSON with sorted keys and no blanks: equal values have equal texts. */
function canonicalJson(value: Canonical): string {
  if (value instanceof Map) {
    const members = [...value].sort(([a], [b]) => (a < b ? -1 : 1));
    return `{${members.map(([key, member]) => `${JSON.stringify(key)}:${canonicalJson(member)}`).join(',')}}`;
  }
  if (Array.isArray(value)) return `[${value.map((item) => canonicalJson(item)).join(',')}]`;
  return JSON.stringify(value);
}

/** The rules of one type, by entry. */
interface Section {
  readonly rules: string[];
  /** Names or ranges. */
  readonly entries: Map<string, string[]>;
  readonly prefixes: Map<string, string[]>;
  readonly conditions: Map<string, Canonical>;
}

const NAME = /^[A-Za-z0-9._:@/-]{1,512}$/;
const PREFIX = /^[A-Za-z0-9._:@/-]{0,511}\*$/;

/**
 * Rules as a `RuleSet` (schemas/policy/data.json): caps in integer pico-dollars per token, ranges canonical, every list of
 * rule ids sorted. @throws PolicyFailure for a value that no stored rule can have.
 */
function ruleSet(rules: readonly PolicyRule[]): Canonical {
  const sections = new Map<RuleType, Section>();
  for (const rule of [...rules].sort((a, b) => (a.id < b.id ? -1 : 1))) {
    const section = sections.get(rule.ruleType) ?? emptySection();
    sections.set(rule.ruleType, section);
    section.rules.push(rule.id);
    addRule(section, rule);
  }
  return new Map([...sections].map(([type, section]) => [type, MEMBERS[kindOf(type)](section)]));
}

const emptySection = (): Section => ({ rules: [], entries: new Map(), prefixes: new Map(), conditions: new Map() });

/** Members of a kind whose entries are whole names, or prefixes of some. */
const entryMembers = ({ rules, entries, prefixes }: Section): Canonical =>
  new Map<string, Canonical>([
    ['rules', rules],
    ['exact', entries],
    ['prefixes', new Map([...prefixes].map(([entry, listed]) => [entry, prefixEntry(entry, listed)]))],
  ]);

const MEMBERS: Readonly<Record<RuleKind, (section: Section) => Canonical>> = {
  models: entryMembers,
  providers: ({ rules, entries }) =>
    new Map<string, Canonical>([
      ['rules', rules],
      ['exact', entries],
    ]),
  pricing: ({ rules, conditions }) =>
    new Map<string, Canonical>([
      ['rules', rules],
      ['conditions', conditions],
    ]),
  ip_cidrs: ({ rules, entries }) =>
    new Map<string, Canonical>([
      ['rules', rules],
      ['ranges', entries],
    ]),
  tags: entryMembers,
};

const prefixEntry = (entry: string, rules: string[]): Canonical =>
  new Map<string, Canonical>([
    ['prefix', entry.slice(0, -1)],
    ['rules', rules],
  ]);

function addRule(section: Section, rule: PolicyRule): void {
  try {
    byKind(rule, {
      models: ({ models }) => listEntries(section, models, rule.id),
      providers: ({ providers }) => {
        for (const entry of someOf(providers)) listRule(section.entries, nameEntry(entry), rule.id);
      },
      pricing: (conditions) => {
        section.conditions.set(rule.id, pricingCondition(conditions));
      },
      ip_cidrs: ({ ipCidrs }) => {
        for (const entry of someOf(ipCidrs)) listRule(section.entries, canonicalCidr(entry), rule.id);
      },
      tags: ({ tags }) => listEntries(section, tags, rule.id),
    });
  } catch (cause) {
    throw new PolicyFailure('A stored rule is invalid.', cause);
  }
}

function listEntries({ entries, prefixes }: Section, listed: readonly string[], rule: string): void {
  for (const entry of someOf(listed)) {
    if (PREFIX.test(entry)) listRule(prefixes, entry, rule);
    else listRule(entries, nameEntry(entry), rule);
  }
}

/** Rules come sorted, so a repeated entry of one rule finds its id last. */
function listRule(byEntry: Map<string, string[]>, entry: string, rule: string): void {
  const listed = byEntry.get(entry);
  if (listed === undefined) byEntry.set(entry, [rule]);
  else if (listed.at(-1) !== rule) listed.push(rule);
}

function someOf(entries: readonly string[]): readonly string[] {
  if (!Array.isArray(entries) || entries.length === 0) throw new TypeError('The list of entries is empty.');
  return entries;
}

function nameEntry(entry: string): string {
  if (!NAME.test(entry)) throw new TypeError(`"${entry}" is not an entry.`);
  return entry;
}

function pricingCondition({ pricingType, maxInputPrice, maxOutputPrice, ...unknown }: StoredPricingValue): Canonical {
  if (Object.keys(unknown).length > 0) throw new TypeError('The pricing value has an unknown field.');
  const condition = new Map<string, Canonical>();
  if (pricingType !== undefined) condition.set('pricing_type', knownType(pricingType));
  if (maxInputPrice !== undefined) condition.set('max_input_price', capOf(maxInputPrice));
  if (maxOutputPrice !== undefined) condition.set('max_output_price', capOf(maxOutputPrice));
  if (condition.size === 0) throw new TypeError('The pricing value states no condition.');
  return condition;
}

function knownType(type: string): string {
  if (type !== 'free' && type !== 'paid') throw new TypeError(`"${type}" is not a pricing type.`);
  return type;
}

/** At most 9e12, so a JSON number holds it exactly. */
const capOf = (price: string): number => Number(parseUsdPerMillion(price));

/**
 * Throws PolicyFailure unless a stored text is well-formed `SubjectRules`. A deny list of the wrong shape would match nothing
 * in Rego, and so let everything through: what cannot be read must deny.
 */
export function assertSubjectRules(text: string): void {
  let rules: unknown;
  try {
    rules = JSON.parse(text);
  } catch (cause) {
    throw new PolicyFailure('The stored rules of a subject are not JSON.', cause);
  }
  if (!validateSubjectRules(rules)) {
    throw new PolicyFailure('The stored rules of a subject are malformed.', validateSubjectRules.errors?.[0]);
  }
}

/** The policy could not be evaluated. Always a denial (503), never a pass; the cause is for the log. */
export class PolicyFailure extends Error {
  override readonly name = 'PolicyFailure';

  constructor(message: string, cause?: unknown) {
    super(message, { cause });
  }
}
