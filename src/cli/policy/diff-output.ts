import { withName } from '../../domain/id.ts';
import type { AccessChanges, AccessDiff, AccessFlip, AccessHolder } from '../../generated/types.ts';
import { counted, plainText } from '../../lib/text.ts';
import { groupsOf, type World } from '../../workbench/world/world.ts';
import { type Format, paint, print, printJson, warn } from '../terminal/output.ts';
import { addressText, nameOf, scopeText } from './access-output.ts';

/** `full`: everyone and everything, however much it is. `markdown`: for a comment on a pull request. */
export type DiffFormat = Format & {
  readonly withoutCredential?: boolean;
  readonly full?: true;
  readonly markdown?: true;
};

/** Words by which holders are counted together, such as `keys of developers in the group contractors`. */
export type KindOf = (holder: AccessHolder) => string;

const byScope: KindOf = ({ scope }) => `${scope}s`;

/** By role, and by groups. A holder of a document has no role, and one that is in neither world is counted by its scope. */
export const kindsIn =
  (...worlds: readonly World[]): KindOf =>
  (holder) => {
    for (const world of worlds.toReversed()) {
      const key = world.keys.get(holder.id);
      const member = world.members.get(key?.memberId ?? holder.id);
      if (member === undefined) continue;
      const role = member.role === undefined ? '' : ` of ${member.role}s`;
      const who = key === undefined ? (member.role === undefined ? 'members' : `${member.role}s`) : `keys${role}`;
      const groups = groupsOf(world, member.id, holder.id).map(({ name }) => plainText(name));
      return groups.length === 0
        ? who
        : `${who} in the ${groups.length === 1 ? 'group' : 'groups'} ${groups.join(', ')}`;
    }
    return byScope(holder);
  };

/** Exactly what differs; more than a screen of it is counted unless all of it is asked for. */
export function showDiff(diff: AccessDiff, format: DiffFormat, kindOf: KindOf = byScope): void {
  if (format.json) {
    printJson(diff);
    return;
  }
  if (format.markdown) {
    print(markdownDiff(diff, format, kindOf));
    return;
  }
  for (const line of flipLines(diff, format, kindOf)) print(line);
  for (const line of summaryOf(diff, format)) print(line);
  for (const warning of diff.warnings) warn(`warning: ${warning}`);
}

/** The sums. */
function summaryOf(diff: AccessDiff, { withoutCredential }: DiffFormat): string[] {
  const where = withoutCredential ? '' : ': --without-credential lists them';
  const lines = [...accessLines(diff, where), ...reportLines(diff.ifEnforced, where)];
  return lines.length > 0 ? lines : [sameAccess(diff)];
}

const sameAccess = ({ changedRules }: AccessDiff): string =>
  changedRules === 0
    ? 'No change in access.'
    : `${changedRules === 1 ? '1 rule differs' : `${changedRules} rules differ`}; no change in access.`;

/** The unit in which changes of access are counted. */
const PAIRS = '(pairs of a key or member and a mapping)';

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

/** A flip of access; `ifEnforced`: it would come next, if rules in mode `report` were enforced. */
interface ShownFlip {
  readonly flip: AccessFlip;
  readonly ifEnforced: boolean;
}

/** Lines of flips that are printed unless all are asked for: with the rules and the sums they fit a screen. */
const MOST_LINES = 40;
const MOST_BRIEF = 6;
/** Flips of this many holders, or mappings, name all of them. */
const NAMED_HOLDERS = 4;
const NAMED_MAPPINGS = 6;
const EXAMPLES = 3;

function flipLines(diff: AccessDiff, { full }: DiffFormat, kindOf: KindOf): string[] {
  const flips = [
    ...diff.flips.map((flip): ShownFlip => ({ flip, ifEnforced: false })),
    ...diff.ifEnforced.flips.map((flip): ShownFlip => ({ flip, ifEnforced: true })),
  ];
  if (full) return flips.flatMap((each) => linesOf(each, undefined));
  const whole = flips.map((each) => linesOf(each, kindOf));
  if (whole.flat().length <= MOST_LINES) return whole.flat();
  return shortened(flips, kindOf);
}

/** The widest first: what is newly permitted, then what is lost; those that have no room in one line each. */
function shortened(flips: readonly ShownFlip[], kindOf: KindOf): string[] {
  const lines: string[] = [];
  const brief: ShownFlip[] = [];
  for (const each of flips.toSorted(byWeight)) {
    const own = linesOf(each, kindOf);
    if (brief.length === 0 && lines.length + own.length <= MOST_LINES - MOST_BRIEF) lines.push(...own);
    else brief.push(each);
  }
  lines.push(...brief.slice(0, MOST_BRIEF).map(briefLine));
  const more = brief.length - MOST_BRIEF;
  if (more > 0) lines.push(`and ${counted(more, 'more change', 'more changes')} of access.`);
  return [...lines, '--full lists everyone and everything.', ''];
}

const pairsOf = ({ flip }: ShownFlip): number => flip.holders.length * flip.mappings.length;

const byWeight = (a: ShownFlip, b: ShownFlip): number =>
  Number(a.ifEnforced) - Number(b.ifEnforced) ||
  Number(b.flip.change === 'gained') - Number(a.flip.change === 'gained') ||
  pairsOf(b) - pairsOf(a);

const VERBS = {
  gained: { is: 'newly permitted', would: 'would be newly permitted' },
  lost: { is: 'no longer permitted', would: 'would no longer be permitted' },
};

/** `newly permitted from any address, by added group ci rule rule_… (allow_models)`. */
function headOf({ flip, ifEnforced }: ShownFlip): string {
  const { change, credential, addresses, reason, rules } = flip;
  const verb = VERBS[change][ifEnforced ? 'would' : 'is'];
  const why = reason === 'rules' ? rules.map((rule) => changedRuleText(rule, ifEnforced)) : [reason];
  const from = addressText(addresses);
  return `${verb}${credential ? '' : ', without a credential,'} from ${from === 'any' ? 'any address' : from}, by ${why.join(', ')}${ifEnforced ? ', if enforced' : ''}`;
}

const briefLine = (each: ShownFlip): string =>
  `${headOf(each)}: ${counted(each.flip.holders.length, 'key or member', 'keys and members')}, ${counted(each.flip.mappings.length, 'mapping')}`;

/** @param kindOf undefined: everyone is named, and every mapping */
function linesOf(shown: ShownFlip, kindOf: KindOf | undefined): string[] {
  const { change, holders, mappings } = shown.flip;
  const mark = paint(change === 'gained' ? 'green' : 'red', `    ${change === 'gained' ? '+' : '-'}`);
  const named =
    kindOf === undefined || mappings.length <= NAMED_MAPPINGS ? mappings : mappings.slice(0, NAMED_MAPPINGS - 1);
  const more = mappings.length - named.length;
  return [
    headOf(shown),
    ...(kindOf === undefined ? holders.map(nameOf) : holderTexts(holders, kindOf)).map((text) => `  ${text}`),
    ...named.map((mapping) => `${mark} ${mapping}`),
    ...(more > 0 ? [`${mark} and ${counted(more, 'more mapping')}`] : []),
    '',
  ];
}

/** Few by name; many by what they are, with examples. */
function holderTexts(holders: readonly AccessHolder[], kindOf: KindOf): string[] {
  if (holders.length <= NAMED_HOLDERS) return holders.map(nameOf);
  const kinds = [...Map.groupBy(holders, kindOf)].sort(([, a], [, b]) => b.length - a.length);
  const shown = kinds.length <= NAMED_HOLDERS ? kinds : kinds.slice(0, NAMED_HOLDERS - 1);
  const rest = kinds.slice(shown.length).reduce((sum, [, each]) => sum + each.length, 0);
  return [
    ...shown.map(([kind, each]) => kindText(kind, each)),
    ...(rest > 0 ? [`and ${counted(rest, 'more key or member', 'more keys and members')}`] : []),
  ];
}

function kindText(kind: string, [first, ...others]: readonly AccessHolder[]): string {
  if (first === undefined) return '';
  const all = [first, ...others];
  return others.length === 0
    ? nameOf(first)
    : `${all.length} ${kind}, such as ${all.slice(0, EXAMPLES).map(shortName).join(', ')}`;
}

const shortName = ({ id, name }: AccessHolder): string => plainText(name || id);

function changedRuleText(
  { change, id, ruleType, description, ...whose }: AccessFlip['rules'][number],
  ifEnforced: boolean,
): string {
  const about = description === null ? ruleType : `${ruleType}, ${plainText(description)}`;
  return `${ifEnforced ? '' : `${change} `}${scopeText(whose)} rule ${withName(id, about)}`;
}

/** The sums, and below a fold who gains and loses what. */
export function markdownDiff(diff: AccessDiff, format: DiffFormat, kindOf: KindOf = byScope): string {
  const lines = flipLines(diff, format, kindOf);
  const warnings = diff.warnings.map((warning) => `> **Warning:** ${markdownText(warning)}`);
  return [
    ...summaryOf(diff, format),
    ...(lines.length === 0
      ? []
      : [
          '<details><summary>Who gains and loses what</summary>',
          `<pre>${lines.map(markdownText).join('\n').trimEnd()}</pre>`,
          '</details>',
        ]),
    ...warnings,
  ].join('\n\n');
}

/** Text of people as it is, without a meaning in Markdown or HTML: nothing is formatted, linked or mentioned by it. */
export const markdownText = (text: string): string =>
  text.replaceAll(/[\\`*_[\]<>#!|~@&:]/g, (character) => `&#${character.charCodeAt(0)};`);
