import { withName } from '../../domain/id.ts';
import type { LintFinding } from '../../generated/types.ts';
import type { WorldRule, WorldSubject } from '../world/world.ts';

/** A finding about a subject, or about rules of it. @param said goes on from their names: ` matches nothing.`, `: "x" is unknown.` */
export function finding(
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
