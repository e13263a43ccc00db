import { withName } from '../domain/id.ts';
import type {
  AccessAddressClass,
  AccessCell,
  AccessHolder,
  AccessOverview,
  AccessReport,
  AccessRule,
} from '../generated/types.ts';
import { type Cell, print, printJson, printTable } from './output.ts';

interface Format {
  readonly json?: true;
}

const EVERY = '0.0.0.0/0, ::/0, unknown';

/** A set of addresses in a few words. */
export const addressText = (addresses: readonly string[]): string => {
  const text = addresses.join(', ');
  if (text === EVERY) return 'any';
  return text === '' ? 'none' : text;
};

export const nameOf = ({ scope, id, name }: AccessHolder): string =>
  scope === 'member' ? `${name} (member, a key without rules)` : withName(id, name);

const rulesText = (ruleIds: readonly string[]): string => ruleIds.join(', ') || '-';

const addressRow = ({ addresses, permitted, ruleIds }: AccessAddressClass): Cell[] => [
  permitted ? { text: 'permitted', colour: 'green' } : { text: 'denied', colour: 'red' },
  { text: rulesText(ruleIds) },
  { text: addressText(addresses) },
];

const NO_CREDENTIAL: Cell = { text: 'no credential', colour: 'yellow' };

/** What can be called first. @param marked with a column that says which that is */
function printCells(model: string, by: string, cells: readonly AccessCell[], marked: boolean, empty: string): void {
  const rows = cells
    .toSorted((a, b) => Number(b.credential) - Number(a.credential))
    .map((cell): Cell[] => [
      { text: cell.model },
      { text: cell.provider },
      ...(marked ? [cell.credential ? { text: 'yes' } : NO_CREDENTIAL] : []),
      { text: rulesText(cell.ruleIds) },
    ]);
  printTable([model, 'PROVIDER', ...(marked ? ['CALLABLE'] : []), by], rows, empty);
}

const ruleRow = ({ id, scope, ruleType, description }: AccessRule): Cell[] => [
  { text: id },
  { text: scope },
  { text: ruleType },
  { text: description ?? '-' },
];

export type ShownFormat = Format & { readonly withoutCredential?: boolean };
type AccessFormat = ShownFormat & { readonly denied?: true };

/** Everything that one holder reaches. */
export function showAccess(report: AccessReport, { json, denied, withoutCredential }: AccessFormat): void {
  if (json) {
    printJson(report);
    return;
  }
  const callable = report.reached.filter(({ credential }) => credential);
  const models = new Set(callable.map(({ model }) => model)).size;
  print(
    `${nameOf(report.holder)} reaches ${models} models by ${callable.length} mappings (policy ${report.policyRevision}).`,
  );
  const marked = withoutCredential === true;
  showRest(report.withoutCredential, marked);
  print('');
  printTable(['CALLS ARE', 'BY', 'FROM ADDRESS'], report.addresses.map(addressRow), '');
  print('');
  printCells('MODEL', 'ALLOWED BY', report.reached, marked, 'It reaches nothing.');
  if (denied) {
    print('');
    printCells('DENIED MODEL', 'BY', report.denied, marked, 'Nothing is denied.');
  }
  if (report.rules.length === 0) return;
  print('');
  printTable(['RULE', 'SCOPE', 'TYPE', 'DESCRIPTION'], report.rules.map(ruleRow), '');
}

function showRest(count: number, shown: boolean): void {
  if (count === 0) return;
  const what = count === 1 ? '1 more mapping is permitted' : `${count} more mappings are permitted`;
  print(
    `${what}, but no credential is there to call ${count === 1 ? 'it' : 'them'}${shown ? '' : ': --without-credential lists them'}.`,
  );
}

/** What everyone reaches, in a line each. */
export function showOverview({ holders }: AccessOverview, { json }: Format): void {
  if (json) {
    printJson({ holders });
    return;
  }
  const rows = holders.map(({ id, name, mappings, withoutCredential, addresses }): Cell[] => [
    { text: id },
    { text: name || '-' },
    { text: String(new Set(mappings.map((mapping) => mapping.slice(mapping.indexOf('/') + 1))).size) },
    { text: String(mappings.length) },
    { text: String(withoutCredential) },
    { text: addressText(addresses) },
  ]);
  const titles = ['ID', 'NAME', 'MODELS', 'MAPPINGS', 'NO CREDENTIAL', 'FROM ADDRESS'];
  printTable(titles, rows, 'There are no keys and no members.');
}
