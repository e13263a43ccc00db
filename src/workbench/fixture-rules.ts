import { kindOf, type PolicyRule } from '../domain/iam-rule.ts';
import { type RuleContent, readRule } from '../domain/rule-content.ts';
import type { FixtureSubject, IamRule, PolicySubject, RuleType } from '../generated/types.ts';
import { validateRuleList } from '../generated/validators.js';
import { checkedShape, locating } from './fixture-shape.ts';
import { FixtureFault, type Path, type Place, type SourceDocument } from './fixture-source.ts';

export type Scope = PolicySubject['scope'];

/** An active rule, and where it was written. */
export interface GivenRule {
  readonly scope: Scope;
  /** The name of its key or member; absent for the organization. */
  readonly owner?: string;
  readonly rule: PolicyRule;
  /** As the fixture has it: callers are told of it. */
  readonly description?: string;
  /** Absent when it does not come from a file. */
  readonly place?: Place;
  /** The id under which a database has it, whatever the fixture calls it. */
  readonly storedId?: string;
}

type WrittenRule = Pick<GivenRule, 'rule' | 'description'> & { readonly place: Place };

type RuleEntry = NonNullable<FixtureSubject['rules']>[string];

export const RULE_TYPES = [
  'allow_models',
  'deny_models',
  'allow_providers',
  'deny_providers',
  'allow_pricing',
  'deny_pricing',
  'allow_ip_cidrs',
  'deny_ip_cidrs',
] as const satisfies readonly RuleType[];

const VALUE_FIELD = { models: 'models', providers: 'providers', ip_cidrs: 'ipCidrs', pricing: null } as const;

/** What `below` leads to in the document, as active rules by id with their places. @throws FixtureFault */
export function readRules(
  document: SourceDocument,
  below: Path,
  { rules = {}, rulesFrom }: FixtureSubject,
): WrittenRule[] {
  const given = Object.entries(rules).flatMap(([id, entry]) => {
    const at = [...below, 'rules', id];
    return active(id, readEntry(document, at, entry), document.placeOf(at));
  });
  if (rulesFrom === undefined) return given;
  return [...given, ...readRuleFile(document, [...below, 'rulesFrom'], rulesFrom)];
}

function readEntry(document: SourceDocument, at: Path, entry: RuleEntry): RuleContent {
  const form = apiForm({ ...entry });
  if (form === null) {
    throw new FixtureFault(document.placeOf(at), `A rule has exactly one rule type: one of ${RULE_TYPES.join(', ')}.`);
  }
  return locating(document, at, () => readRule(form.body), form.rename);
}

/** A rule as the API takes it. */
interface ApiForm {
  readonly body: object;
  /** Makes of a pointer into the body the one into what was written. */
  readonly rename: (pointer: string) => string;
}

/** The API's form of a rule that is written so, or in the short form; null: it has no rule type, or several. */
export function apiForm(entry: Readonly<Record<string, unknown>>): ApiForm | null {
  const types = RULE_TYPES.filter((type) => entry[type] !== undefined);
  const [ruleType] = types;
  const isApis = entry.ruleType !== undefined || entry.ruleValue !== undefined;
  if (types.length !== (isApis ? 0 : 1)) return null;
  if (ruleType === undefined) return { body: entry, rename: (pointer) => pointer };
  const { [ruleType]: value, ...others } = entry;
  const field = VALUE_FIELD[kindOf(ruleType)];
  const written = field === null ? '/ruleValue' : `/ruleValue/${field}`;
  return {
    body: { ...others, ruleType, ruleValue: field === null ? value : { [field]: value } },
    rename: (pointer) => pointer.replace(written, `/${ruleType}`),
  };
}

/** The rules of one owner, as `portcullis rules list --json` prints them. */
function readRuleFile(from: SourceDocument, named: Path, name: string): WrittenRule[] {
  const [document] = from.open(name, named);
  if (document === undefined) throw new FixtureFault(from.placeOf(named), `${name} is empty.`);
  const { rules } = checkedShape(validateRuleList, document);
  const [first] = rules;
  return rules.flatMap((rule, index) => {
    const at = ['rules', index];
    if (first !== undefined && ownerOf(rule) !== ownerOf(first)) {
      throw new FixtureFault(
        document.placeOf(at),
        'These rules belong to several owners: name one when you list them.',
      );
    }
    const { id, ruleType, ruleValue, mode, status, description } = rule;
    const content = locating(document, at, () => readRule({ ruleType, ruleValue, mode, status, description }));
    return active(id, content, document.placeOf(at));
  });
}

const ownerOf = ({ apiKeyId, memberId }: IamRule): string | null => apiKeyId ?? memberId ?? null;

function active(id: string, { canonical, status, mode, description }: RuleContent, place: Place): WrittenRule[] {
  if (status !== 'active') return [];
  return [{ rule: { ...canonical, id, mode }, place, ...(description === null ? {} : { description }) }];
}
