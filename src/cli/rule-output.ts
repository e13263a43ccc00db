import type { Deletion, IamRule, RuleAnswer, RuleValue } from '../generated/types.ts';
import { type Cell, print, printJson, printTable, warn } from './output.ts';

interface Format {
  readonly json?: true;
}

const TITLES = ['ID', 'OWNER', 'TYPE', 'VALUE', 'MODE', 'STATUS', 'DESCRIPTION'];
const LONGEST_VALUE = 60;

function entries(value: RuleValue): readonly string[] {
  if ('models' in value) return value.models;
  if ('providers' in value) return value.providers;
  if ('ipCidrs' in value) return value.ipCidrs;
  return Object.entries(value).map(([name, condition]) => `${name} ${condition}`);
}

function valueText(value: RuleValue): string {
  const text = entries(value).join(', ');
  return text.length > LONGEST_VALUE ? `${text.slice(0, LONGEST_VALUE)}… (${entries(value).length})` : text;
}

const row = (rule: IamRule): Cell[] => [
  { text: rule.id },
  { text: rule.apiKeyId ?? rule.memberId ?? 'organization' },
  { text: rule.ruleType, colour: rule.ruleType.startsWith('deny') ? 'red' : 'green' },
  { text: valueText(rule.ruleValue) },
  rule.mode === 'report' ? { text: rule.mode, colour: 'yellow' } : { text: rule.mode },
  rule.status === 'inactive' ? { text: rule.status, colour: 'yellow' } : { text: rule.status },
  { text: rule.description ?? '-' },
];

export function showRules(rules: readonly IamRule[], { json }: Format): void {
  if (json) printJson({ rules, nextCursor: null });
  else printTable(TITLES, rules.map(row), 'There are no rules.');
}

/** A rule that was written, with what may not be as it was meant. */
export function showRule(answer: RuleAnswer, { json }: Format): void {
  if (json) {
    printJson(answer);
    return;
  }
  printTable(TITLES, [row(answer.rule)], '');
  for (const warning of answer.warnings) warn(`warning: ${warning}`);
}

export function showRemovedRule(deletion: Deletion, { json }: Format): void {
  if (json) printJson(deletion);
  else print(`Removed ${deletion.id}.`);
}
