import { actionOf } from '../../core/reachable.ts';
import { effectOf, factsOf, type PolicyRule } from '../../domain/iam-rule.ts';
import type { Mapping } from '../../domain/model.ts';
import { type AddressSet, EVERY_ADDRESS, intersect, isEmpty, NO_ADDRESS, subtract } from './address-classes.ts';
import { isIpRule, type SubjectAccess } from './subject-judge.ts';

/** What one rule matches. */
export interface MatchedCells {
  /** Of mappings; none for an IP rule. */
  readonly positions: readonly number[];
  /** None for any other rule. */
  readonly addresses: AddressSet;
}

/**
 * What a rule matches, by what it does alone: an allow rule lets pass what it matches, a deny rule everything else.
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
