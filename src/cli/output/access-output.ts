import { withName } from '../../domain/id.ts';
import type {
  AccessAddressClass,
  AccessAlias,
  AccessCell,
  AccessHolder,
  AccessOverview,
  AccessReport,
  AccessRule,
} from '../../generated/types.ts';
import { counted } from '../../lib/counted.ts';
import { plainText } from '../../lib/text.ts';
import { type Cell, type Format, free, print, printJson, printTable } from '../terminal/output.ts';
import { printRuleTable } from './rule-table.ts';

const EVERY = '0.0.0.0/0, ::/0, unknown';

/** What flips of access are counted in. */
export const PAIRS = '(pairs of a key or member and a mapping)';

/** A set of addresses in a few words. */
export const addressText = (addresses: readonly string[]): string => {
  const text = addresses.join(', ');
  if (text === EVERY) return 'any';
  return text === '' ? 'none' : text;
};

export const nameOf = ({ scope, id, name }: AccessHolder): string =>
  plainText(scope === 'member' ? `${name} (member, a key without rules)` : withName(id, name));

export type NamedRule = Pick<AccessRule, 'id' | 'description' | 'groupName'>;
type Rules = readonly AccessRule[];

/** Rules by their ids and descriptions. */
export const rulesText = (rules: readonly NamedRule[], ruleIds: readonly string[]): string =>
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

/** What can be called first. */
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

/** Of a group which one it is. */
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

/** What everyone reaches, in a line each. */
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
