import { withName } from '../../domain/id.ts';
import type { AccessChanges, AccessDiff, AccessFlip } from '../../generated/types.ts';
import { plainText } from '../../lib/text.ts';
import { paint, print, printJson, warn } from '../terminal/output.ts';
import { addressText, nameOf, PAIRS, type ShownFormat, scopeText } from './access-output.ts';

/** Exactly what differs. */
export function showDiff(diff: AccessDiff, { json, withoutCredential }: ShownFormat): void {
  if (json) {
    printJson(diff);
    return;
  }
  const where = withoutCredential ? '' : ': --without-credential lists them';
  for (const flip of diff.flips) showFlip(flip, false);
  for (const flip of diff.ifEnforced.flips) showFlip(flip, true);
  const lines = [...accessLines(diff, where), ...reportLines(diff.ifEnforced, where)];
  for (const line of lines.length > 0 ? lines : [sameAccess(diff)]) print(line);
  for (const warning of diff.warnings) warn(`warning: ${warning}`);
}

const sameAccess = ({ changedRules }: AccessDiff): string =>
  changedRules === 0
    ? 'No change in access.'
    : `${changedRules === 1 ? '1 rule differs' : `${changedRules} rules differ`}; no change in access.`;

function accessLines({ gained, lost, withoutCredential }: AccessChanges, where: string): string[] {
  const { gained: opened, lost: closed } = withoutCredential;
  if (gained + lost > 0) {
    return [
      `${gained} newly permitted, ${lost} no longer permitted ${PAIRS}.`,
      ...(opened + closed > 0
        ? [`Without a credential to call them, ${opened} more newly permitted, ${closed} no longer permitted${where}.`]
        : []),
    ];
  }
  if (opened + closed === 0) return [];
  return [
    `${opened} newly permitted, ${closed} no longer permitted ${PAIRS}, and for none of them is there a credential to call it${where}.`,
  ];
}

function reportLines({ gained, lost, withoutCredential }: AccessChanges, where: string): string[] {
  const [opened, closed] = [gained + withoutCredential.gained, lost + withoutCredential.lost];
  if (opened + closed === 0) return [];
  const rest = opened + closed - gained - lost;
  const uncallable = rest === 0 ? '' : `, ${rest} of them without a credential to call them${where}`;
  return [
    `If the rules in mode report were enforced, ${opened} would be newly permitted and ${closed} would no longer be permitted ${PAIRS}${uncallable}.`,
  ];
}

const VERBS = {
  gained: { is: 'newly permitted', would: 'would be newly permitted' },
  lost: { is: 'no longer permitted', would: 'would no longer be permitted' },
};

function showFlip(
  { change, holders, mappings, credential, addresses, reason, rules }: AccessFlip,
  ifEnforced: boolean,
) {
  const gained = change === 'gained';
  const verb = VERBS[change][ifEnforced ? 'would' : 'is'];
  const why = reason === 'rules' ? rules.map((rule) => ruleText(rule, ifEnforced)) : [reason];
  const end = ifEnforced ? ', if enforced' : '';
  const from = addressText(addresses);
  print(
    `${verb}${credential ? '' : ', without a credential,'} from ${from === 'any' ? 'any address' : from}, by ${why.join(', ')}${end}`,
  );
  for (const holder of holders) print(`  ${nameOf(holder)}`);
  const mark = paint(gained ? 'green' : 'red', `    ${gained ? '+' : '-'}`);
  for (const mapping of mappings) print(`${mark} ${mapping}`);
  print('');
}

function ruleText(
  { change, id, ruleType, description, ...whose }: AccessFlip['rules'][number],
  ifEnforced: boolean,
): string {
  const about = description === null ? ruleType : `${ruleType}, ${plainText(description)}`;
  return `${ifEnforced ? '' : `${change} `}${scopeText(whose)} rule ${withName(id, about)}`;
}
