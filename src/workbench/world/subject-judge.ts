import { listInputs } from '../../core/reachable.ts';
import { type AddressRange, parseRange } from '../../domain/address.ts';
import { entriesOf, kindOf, type PolicyRule } from '../../domain/iam-rule.ts';
import type { Mapping } from '../../domain/model.ts';
import type { PolicyInput, PolicySubject, PolicyViolation } from '../../generated/types.ts';
import { compileSubjectRules, type DataDocument, dataDocument } from '../../policy/data-document.ts';
import { inputDocument } from '../../policy/input-document.ts';
import type { Pdp } from '../../policy/pdp.ts';
import { type AddressSet, addressClasses, EVERY_ADDRESS, union } from './address-classes.ts';
import { FUTURE_MAPPINGS } from './future-models.ts';
import { ruleContents } from './rule-contents.ts';

/**
 * What the enforced rules of one subject, alone, let through. A call passes when its mapping is permitted and its address is:
 * IP rules do not look at mappings, and the other rules not at addresses, so that the two are judged apart.
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
  /** What the policy says against these mappings, by the rules that do not look at addresses. @throws PolicyFailure */
  mappingViolations(rules: readonly PolicyRule[], positions: readonly number[]): Map<number, PolicyViolation[]>;
  /** What the policy says against an address, null for the unknown one, by the IP rules. @throws PolicyFailure */
  addressViolations(rules: readonly PolicyRule[], address: string | null): PolicyViolation[];
}

const SUBJECT = { scope: 'key', id: 'subject' } as const;

export const isIpRule = ({ ruleType }: PolicyRule): boolean => kindOf(ruleType) === 'ip_cidrs';

export const rangesOf = (rules: readonly PolicyRule[]): AddressRange[] =>
  rules.filter(isIpRule).flatMap((rule) => entriesOf(rule).map(parseRange));

/** IP rules judge every candidate alike, so any one is enough, and one that is always there. */
export const addressInput = (address: string | null, subjects: readonly PolicySubject[]): PolicyInput =>
  inputDocument('chat', address, subjects, FUTURE_MAPPINGS.slice(0, 1));

const documentOf = (rules: readonly PolicyRule[]): DataDocument =>
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
    const data = documentOf(rules);
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
    const data = documentOf(rules);
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
      const data = documentOf(rules.filter((rule) => rule.mode === 'enforce' && !isIpRule(rule)));
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
      const data = documentOf(rules.filter((rule) => rule.mode === 'enforce' && isIpRule(rule)));
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
