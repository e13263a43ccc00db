import { withName } from '../../domain/id.ts';
import type {
  AccessRule,
  ExplainedAlias,
  Explanation,
  LintReport,
  PolicyShadow,
  PolicyViolation,
} from '../../generated/types.ts';
import { counted } from '../../lib/counted.ts';
import { plainText } from '../../lib/text.ts';
import { valueText } from '../../policy/denial-message.ts';
import { type Cell, free, print, printJson, printTable } from '../terminal/output.ts';
import { type NamedRule, rulesText, scopeText } from './access-output.ts';
import { managedText } from './rule-table.ts';

interface Format {
  readonly json?: true;
}

const SHOWN_VALUES = 4;

function shortly(values: readonly string[]): string {
  const more = values.length - SHOWN_VALUES;
  return more > 0 ? `${values.slice(0, SHOWN_VALUES).join(', ')} and ${more} more` : values.join(', ');
}

const violationRow = (
  rules: readonly NamedRule[],
  { scope, effect, kind, candidate, ruleIds, values }: PolicyViolation,
): Cell[] => [
  { text: candidate ?? 'all' },
  { text: scopeText({ scope, ...rules.find(({ id }) => ruleIds.includes(id)) }) },
  { text: `${effect}_${kind}`, colour: effect === 'deny' ? 'red' : 'yellow' },
  { text: shortly(values.map((value) => valueText(kind, value))) },
  { text: rulesText(rules, ruleIds) },
];

export const violationTable = (rules: readonly NamedRule[], violations: readonly PolicyViolation[]): void =>
  printTable(
    ['CANDIDATE', free('SCOPE'), 'VIOLATES', free('BY'), free('RULES')],
    violations.map((violation) => violationRow(rules, violation)),
    'Nothing is violated.',
  );

/** A rule as sentences name it. */
type ToldRule = Pick<AccessRule, 'id' | 'scope' | 'description' | 'managedBy'> & { readonly ruleType: string };

/** Where a rule is changed that a policy folder states. */
const managedNote = (rule: ToldRule): string[] =>
  rule.managedBy === undefined ? [] : [`managed by ${managedText(rule)}`];

const ruleText = (rules: readonly ToldRule[], id: string): string => {
  const rule = rules.find((each) => each.id === id);
  return rule === undefined
    ? id
    : plainText(
        withName(
          id,
          [`${scopeText(rule)} ${rule.ruleType}`, rule.description ?? [], managedNote(rule)].flat().join(', '),
        ),
      );
};

/** What the decision would be with the rules in mode `report` in force. */
export function showShadow(
  { permitted, would_deny, would_allow }: PolicyShadow,
  candidates: number,
  rules: readonly ToldRule[],
): void {
  print(`With the report rules in force: ${permitted.length} of ${candidates} permitted${listed(permitted)}.`);
  for (const [verb, ids] of [['deny', would_deny] as const, ['allow', would_allow] as const]) {
    if (ids.length > 0) print(`Would ${verb}: ${ids.map((id) => ruleText(rules, id)).join(', ')}.`);
  }
}

const OUTCOMES: Readonly<Record<Explanation['outcome'], string>> = {
  permit: 'permit',
  deny: 'deny',
  not_found: 'not found',
};

/** The outcome of one request, and why. */
export function showExplanation(explanation: Explanation, { json }: Format): void {
  if (json) {
    printJson(explanation);
    return;
  }
  const { outcome, reason, request, alias, candidates, permitted, withoutCredential, violations, rules, facts } =
    explanation;
  const from = request.address ?? 'an unknown address';
  print(
    `${request.action} with ${request.model} from ${from}: ${OUTCOMES[outcome]} (policy ${explanation.policyRevision})`,
  );
  if (alias !== undefined) print(plainText(aliasText(alias)));
  if (reason !== null) print(plainText(reason));
  if (outcome === 'not_found') {
    print(
      `\nWith a credential, ${permitted.length} of ${candidates.length} candidates would be permitted${listed(permitted)}.\n`,
    );
  } else {
    print(`\n${servingText(permitted, candidates.length)}.`);
    if (withoutCredential.length > 0) print(`Not callable for lack of a credential: ${withoutCredential.join(', ')}.`);
    print('');
  }
  violationTable(rules, violations);
  print('');
  if (facts !== undefined) print('Custom policy has judged a short chat over REST now, but for what --facts says.\n');
  showFlips(explanation);
  showAlternative(explanation);
  const { shadow } = explanation;
  if (shadow === undefined) return;
  print('');
  showShadow(shadow, candidates.length, rules);
}

const servingText = (permitted: readonly string[], candidates: number): string =>
  permitted.length === 0
    ? 'No provider may serve this call'
    : `${permitted.length} of ${counted(candidates, 'provider')} may serve this call${listed(permitted)}`;

/** `fast is an alias of gpt-5-mini (80), claude-haiku-4-5 (20).` */
function aliasText({ name, projectId, models, weights }: ExplainedAlias): string {
  const named = models.map((model, position) => (weights === null ? model : `${model} (weight ${weights[position]})`));
  return `${name} is an alias of the ${projectId === null ? 'organization' : 'project'}: ${named.join(', ')}.`;
}

const listed = (ids: readonly string[]): string => (ids.length === 0 ? '' : `: ${ids.join(', ')}`);

function showFlips({ permitted, flips, rules }: Explanation): void {
  const other = permitted.length === 0 ? 'permitted' : 'denied';
  if (flips.sets.length === 0) {
    print(flips.exhaustive ? 'Removing rules would not change this.' : 'Too many rules to try them all.');
  }
  for (const set of flips.sets)
    print(`It would be ${other} without ${set.map((id) => ruleText(rules, id)).join(' and ')}.`);
}

function showAlternative({ outcome, alternative }: Explanation): void {
  if (outcome === 'permit') return;
  if (alternative === null) print('No similar model is permitted.');
  else print(`Permitted instead: ${alternative.provider}/${alternative.model} (${alternative.nearness}).`);
}

export function showLint({ findings }: LintReport, { json }: Format): void {
  if (json) {
    printJson({ findings });
    return;
  }
  const rows = findings.map(({ code, scope, subjectId, subjectName, message }): Cell[] => [
    { text: code, colour: 'yellow' },
    { text: `${scope} ${subjectName || subjectId}` },
    { text: message },
  ]);
  printTable(['FINDING', 'OF', 'WHAT'], rows, 'Nothing was found.');
}
