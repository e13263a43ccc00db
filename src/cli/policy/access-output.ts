import { withName } from '../../domain/id.ts';
import type {
  AccessAddressClass,
  AccessAlias,
  AccessCell,
  AccessHolder,
  AccessOverview,
  AccessReport,
  AccessRule,
  ExplainedAlias,
  Explanation,
  LintReport,
  ManagedBy,
  PolicyShadow,
  PolicyViolation,
} from '../../generated/types.ts';
import { counted, plainText } from '../../lib/text.ts';
import { valueText } from '../../policy/denial.ts';
import { type Cell, type Column, type Format, free, print, printJson, printTable } from '../terminal/output.ts';

const EVERY = '0.0.0.0/0, ::/0, unknown';

/** A set of addresses in a few words. */
export const addressText = (addresses: readonly string[]): string => {
  const text = addresses.join(', ');
  if (text === EVERY) return 'any';
  return text === '' ? 'none' : text;
};

export const nameOf = ({ scope, id, name }: AccessHolder): string =>
  plainText(scope === 'member' ? `${name} (member, a key without rules)` : withName(id, name));

type NamedRule = Pick<AccessRule, 'id' | 'description' | 'groupName'>;
type Rules = readonly AccessRule[];

/** Rules by their ids and descriptions. */
const rulesText = (rules: readonly NamedRule[], ruleIds: readonly string[]): string =>
  ruleIds.map((id) => withName(id, rules.find((rule) => rule.id === id)?.description)).join(', ') || '-';

const addressRow = (rules: Rules, { addresses, permitted, ruleIds }: AccessAddressClass): Cell[] => [
  permitted ? { text: 'permitted', colour: 'green' } : { text: 'denied', colour: 'red' },
  { text: rulesText(rules, ruleIds) },
  { text: addressText(addresses) },
];

/** Whether there is a credential to call a mapping. */
export const callableCell = (credential: boolean): Cell =>
  credential ? { text: 'yes' } : { text: 'no credential', colour: 'yellow' };

interface CellTable {
  readonly model: string;
  readonly by: string;
  readonly empty: string;
  readonly rules: Rules;
  /** With a column that says what can be called. */
  readonly marked: boolean;
  readonly format: Format;
}

/** Prints cells, those that can be called first. */
function printCells(cells: readonly AccessCell[], { model, by, empty, rules, marked, format }: CellTable): void {
  const rows = cells
    .toSorted((a, b) => Number(b.credential) - Number(a.credential))
    .map((cell): Cell[] => [
      { text: cell.model },
      { text: cell.provider },
      ...(marked ? [callableCell(cell.credential)] : []),
      { text: rulesText(rules, cell.ruleIds) },
    ]);
  printTable([model, 'PROVIDER', ...(marked ? ['CALLABLE'] : []), free(by)], rows, empty, format);
}

/** Scope of a rule, with the name of its group. */
export const scopeText = ({
  scope,
  groupName,
}: Pick<AccessRule, 'groupName'> & { readonly scope: AccessRule['scope'] | 'custom' }): string =>
  groupName === undefined ? scope : `${scope} ${groupName}`;

const ruleRow = ({ id, ruleType, description, ...whose }: AccessRule): Cell[] => [
  { text: id },
  { text: scopeText(whose) },
  { text: ruleType },
  { text: description ?? '-' },
];

export type ShownFormat = Format & { readonly withoutCredential?: boolean };
type AccessFormat = ShownFormat & { readonly denied?: true };

/** Everything that one holder reaches. */
export function showAccess(report: AccessReport, { denied, withoutCredential, ...format }: AccessFormat): void {
  if (format.json) {
    printJson(report);
    return;
  }
  const callable = report.reached.filter(({ credential }) => credential);
  const models = new Set(callable.map(({ model }) => model)).size;
  print(
    `${nameOf(report.holder)} reaches ${counted(models, 'model')} through ${counted(callable.length, 'mapping')} (policy ${report.policyRevision}).`,
  );
  const { rules } = report;
  const marked = withoutCredential === true;
  showRest(report.withoutCredential, marked);
  print('');
  const addresses = report.addresses.map((row) => addressRow(rules, row));
  printTable(['CALLS', free('RULES'), free('FROM ADDRESS')], addresses, '', format);
  print('');
  printCells(report.reached, { model: 'MODEL', by: 'ALLOWED BY', empty: 'It reaches nothing.', rules, marked, format });
  if (denied) {
    print('');
    printCells(report.denied, {
      model: 'DENIED MODEL',
      by: 'DENIED BY',
      empty: 'Nothing is denied.',
      rules,
      marked,
      format,
    });
  }
  printAliases(report.aliases ?? [], format);
  if (rules.length === 0) return;
  print('');
  printRuleTable(['RULE', free('SCOPE'), 'TYPE', free('DESCRIPTION')], rules, ruleRow, '', format);
}

function printAliases(aliases: readonly AccessAlias[], format: Format): void {
  if (aliases.length === 0) return;
  print('');
  const rows = aliases.map(({ name, mappings }): Cell[] => [
    { text: name },
    { text: mappings.join(', ') || 'nothing that it may call' },
  ]);
  printTable(['ALIAS', free('REACHES')], rows, '', format);
}

function showRest(count: number, shown: boolean): void {
  if (count === 0) return;
  const what = count === 1 ? '1 more mapping is permitted' : `${count} more mappings are permitted`;
  print(
    `${what}, but there is no credential to call ${count === 1 ? 'it' : 'them'}${shown ? '' : ': --without-credential lists them'}.`,
  );
}

/** Prints the access of everyone, one line each. */
export function showOverview({ holders }: AccessOverview, format: Format): void {
  if (format.json) {
    printJson({ holders });
    return;
  }
  const rows = holders.map(({ id, name, mappings, withoutCredential, addresses }): Cell[] => [
    { text: name || '-' },
    { text: id },
    { text: String(new Set(mappings.map((mapping) => mapping.slice(mapping.indexOf('/') + 1))).size) },
    { text: String(mappings.length) },
    { text: String(withoutCredential) },
    { text: addressText(addresses) },
  ]);
  const titles = [free('NAME'), 'ID', 'MODELS', 'MAPPINGS', 'NO CREDENTIAL', free('FROM ADDRESS')];
  printTable(titles, rows, 'There are no keys and no members.', format);
}

interface MaybeManaged {
  readonly managedBy?: ManagedBy | null;
}

/** The folder that states a rule, and the rule's name there; where a folder does, the rule is to be changed there. */
const managedText = ({ managedBy }: MaybeManaged): string =>
  managedBy ? `${managedBy.source}: ${managedBy.name}` : '-';

/** Prints rules, with a column for the policy folders that state them if one does. */
export function printRuleTable<Rule extends MaybeManaged>(
  titles: readonly Column[],
  rules: readonly Rule[],
  row: (rule: Rule, index: number) => readonly Cell[],
  empty: string,
  format: Format = {},
): void {
  if (!rules.some(({ managedBy }) => managedBy)) printTable(titles, rules.map(row), empty, format);
  else {
    const rows = rules.map((rule, index) => [...row(rule, index), { text: managedText(rule) }]);
    printTable([...titles, free('MANAGED BY')], rows, empty, format);
  }
}

interface ExplainFormat {
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
type ExplainedRule = Pick<AccessRule, 'id' | 'scope' | 'description' | 'managedBy'> & { readonly ruleType: string };

/** The policy folder that states a rule: the rule is changed there. */
const managedNote = (rule: ExplainedRule): string[] =>
  rule.managedBy === undefined ? [] : [`managed by ${managedText(rule)}`];

const explainedRuleText = (rules: readonly ExplainedRule[], id: string): string => {
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

/** Prints the decision if the rules in mode `report` were in force. */
export function showShadow(
  { permitted, would_deny, would_allow }: PolicyShadow,
  candidates: number,
  rules: readonly ExplainedRule[],
): void {
  print(`With the report rules in force: ${permitted.length} of ${candidates} permitted${listed(permitted)}.`);
  for (const [verb, ids] of [['deny', would_deny] as const, ['allow', would_allow] as const]) {
    if (ids.length > 0) print(`Would ${verb}: ${ids.map((id) => explainedRuleText(rules, id)).join(', ')}.`);
  }
}

const OUTCOMES: Readonly<Record<Explanation['outcome'], string>> = {
  permit: 'permit',
  deny: 'deny',
  not_found: 'not found',
};

/** The outcome of one request, and why. */
export function showExplanation(explanation: Explanation, { json }: ExplainFormat): void {
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
    print(`It would be ${other} without ${set.map((id) => explainedRuleText(rules, id)).join(' and ')}.`);
}

function showAlternative({ outcome, alternative }: Explanation): void {
  if (outcome === 'permit') return;
  if (alternative === null) print('No similar model is permitted.');
  else print(`Permitted instead: ${alternative.provider}/${alternative.model} (${alternative.nearness}).`);
}

export function showLint({ findings }: LintReport, { json }: ExplainFormat): void {
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
