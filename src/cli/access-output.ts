import type {
  AccessAddressClass,
  AccessCell,
  AccessDiff,
  AccessFlip,
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
const addressText = (addresses: readonly string[]): string => {
  const text = addresses.join(', ');
  if (text === EVERY) return 'any';
  return text === '' ? 'none' : text;
};

const nameOf = ({ scope, id, name }: AccessHolder): string =>
  scope === 'member' ? `${name} (member, a key without rules)` : name === '' ? id : `${id} (${name})`;

const rulesText = (ruleIds: readonly string[]): string => ruleIds.join(', ') || '-';

const addressRow = ({ addresses, permitted, ruleIds }: AccessAddressClass): Cell[] => [
  permitted ? { text: 'permitted', colour: 'green' } : { text: 'denied', colour: 'red' },
  { text: rulesText(ruleIds) },
  { text: addressText(addresses) },
];

const cellRow = ({ model, provider, ruleIds }: AccessCell): Cell[] => [
  { text: model },
  { text: provider },
  { text: rulesText(ruleIds) },
];

const ruleRow = ({ id, scope, ruleType }: AccessRule): Cell[] => [{ text: id }, { text: scope }, { text: ruleType }];

/** Everything that one holder reaches. */
export function showAccess(report: AccessReport, { json, denied }: Format & { readonly denied?: true }): void {
  if (json) {
    printJson(report);
    return;
  }
  const models = new Set(report.reached.map(({ model }) => model)).size;
  print(
    `${nameOf(report.holder)} reaches ${models} models by ${report.reached.length} mappings (policy ${report.policyRevision}).\n`,
  );
  printTable(['CALLS ARE', 'BY', 'FROM ADDRESS'], report.addresses.map(addressRow), '');
  print('');
  printTable(['MODEL', 'PROVIDER', 'ALLOWED BY'], report.reached.map(cellRow), 'It reaches nothing.');
  if (denied) {
    print('');
    printTable(['DENIED MODEL', 'PROVIDER', 'BY'], report.denied.map(cellRow), 'Nothing is denied.');
  }
  if (report.rules.length === 0) return;
  print('');
  printTable(['RULE', 'SCOPE', 'TYPE'], report.rules.map(ruleRow), '');
}

/** What everybody reaches, in a line each. */
export function showOverview({ holders }: AccessOverview, { json }: Format): void {
  if (json) {
    printJson({ holders });
    return;
  }
  const rows = holders.map(({ id, name, mappings, addresses }): Cell[] => [
    { text: id },
    { text: name || '-' },
    { text: String(new Set(mappings.map((mapping) => mapping.slice(mapping.indexOf('/') + 1))).size) },
    { text: String(mappings.length) },
    { text: addressText(addresses) },
  ]);
  printTable(['ID', 'NAME', 'MODELS', 'MAPPINGS', 'FROM ADDRESS'], rows, 'There are no keys and no members.');
}

/** Exactly what differs. */
export function showDiff(diff: AccessDiff, { json }: Format): void {
  if (json) {
    printJson(diff);
    return;
  }
  if (diff.flips.length === 0) {
    print('Nothing differs: everybody reaches what they reached.');
    return;
  }
  for (const flip of diff.flips) showFlip(flip);
  print(`${diff.gained} newly permitted, ${diff.lost} no longer permitted (pairs of a key or member and a mapping).`);
}

function showFlip({ change, holders, mappings, addresses, reason, rules }: AccessFlip): void {
  const [mark, verb] = change === 'gained' ? ['+', 'newly permitted'] : ['-', 'no longer permitted'];
  const why =
    reason === 'rules'
      ? rules.map((rule) => `${rule.change} ${rule.scope} rule ${rule.id} (${rule.ruleType})`)
      : [reason];
  print(`${verb} from ${addressText(addresses)}, by ${why.join(', ')}`);
  for (const holder of holders) print(`  ${nameOf(holder)}`);
  const rows = mappings.map((mapping): Cell[] => [
    { text: `    ${mark}`, colour: change === 'gained' ? 'green' : 'red' },
    { text: mapping },
  ]);
  for (const row of rows) print(row.map(({ text }) => text).join(' '));
  print('');
}
