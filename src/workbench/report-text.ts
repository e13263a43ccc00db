import path from 'node:path';
import { counted } from '../domain/counted.ts';
import { plainText } from '../domain/plain-text.ts';
import { type Coverage, percentage, type Share } from './coverage.ts';
import type { GivenRule } from './fixture-rules.ts';
import type { Place } from './fixture-source.ts';
import { type CaseResult, type FixtureResult, triedIn, type WriteResult } from './run-fixtures.ts';

/** Everything that a report tells. */
export interface Report {
  /** SHA-256 of the compiled policy, hex. */
  readonly bundleDigest: string;
  readonly results: readonly FixtureResult[];
  readonly coverage?: Coverage;
}

type Colour = 'green' | 'red' | 'yellow' | 'dim';

export interface TextOptions {
  /** Files are named from here. */
  readonly cwd: string;
  /** Colours a text, where colours are shown. */
  readonly paint: (colour: Colour, text: string) => string;
}

/** `file:line:column`, the file as seen from `cwd`. */
export const placeText = ({ file, line, column }: Place, cwd: string): string =>
  `${path.relative(cwd, file)}:${line}:${column}`;

const MARK = { passed: ['ok', 'green'], failed: ['FAILED', 'red'], skipped: ['skipped', 'yellow'] } as const;

/** A line for each fixture, what failed below it, then sums and coverage. */
export function textReport({ results, coverage, bundleDigest }: Report, options: TextOptions): string {
  const width = Math.max(0, ...results.map(({ fixture }) => plainText(fixture.name).length));
  const lines = results.flatMap((result) => fixtureLines(result, width, options));
  const count = (status: FixtureResult['status']): number => results.filter((each) => each.status === status).length;
  const requests = results.flatMap(({ cases }) => cases).length;
  const writes = results.flatMap((result) => result.writes).length;
  const sums = [
    `${count('passed')} passed`,
    ...(count('failed') > 0 ? [options.paint('red', `${count('failed')} failed`)] : []),
    ...(count('skipped') > 0 ? [options.paint('yellow', `${count('skipped')} skipped`)] : []),
  ];
  const policy = options.paint('dim', `(policy ${bundleDigest.slice(0, 12)})`);
  lines.push(
    '',
    `${counted(results.length, 'fixture')}: ${sums.join(', ')}; ${counted(requests, 'request')}${writes === 0 ? '' : `, ${counted(writes, 'write')}`} ${policy}`,
  );
  if (coverage !== undefined) lines.push(...coverageLines(coverage, options));
  return lines.join('\n');
}

/** A line for each warning; one of an included file is said once, however many include it. */
export const warningLines = ({ results }: Report, cwd: string): string[] => [
  ...new Set(
    results.flatMap(({ fixture }) =>
      fixture.warnings.map(({ place, message }) => `${placeText(place, cwd)}: warning: ${plainText(message)}`),
    ),
  ),
];

function fixtureLines(result: FixtureResult, width: number, options: TextOptions): string[] {
  const { fixture, status } = result;
  const { cwd, paint } = options;
  const [word, colour] = MARK[status];
  const name = plainText(fixture.name).padEnd(width);
  const place = paint('dim', placeText(fixture.place, cwd));
  const lines = [`${paint(colour, word.padEnd(7))} ${name}  ${place}`];
  if (fixture.skip !== undefined) lines.push(`        ${plainText(fixture.skip)}`);
  return [...lines, ...triedIn(result).flatMap((each) => failureLines(each, options))];
}

function failureLines(
  { label, expected, differences }: CaseResult | WriteResult,
  { cwd, paint }: TextOptions,
): string[] {
  if (differences.length === 0) return [];
  return [
    `        ${plainText(label)}  ${paint('dim', placeText(expected.place, cwd))}`,
    ...differences.flatMap(({ expected: wanted, came }) => [
      `          expected  ${paint('green', plainText(wanted))}`,
      `          came      ${paint('red', plainText(came))}`,
    ]),
  ];
}

function coverageLines({ rules, kinds }: Coverage, options: TextOptions): string[] {
  return [
    '',
    shareLine('rules that decide a request', rules, options),
    ...rules.uncovered.map((rule) => `  not covered: ${plainText(ruleText(rule, options.cwd))}`),
    shareLine('rule types by scope', kinds, options),
    ...[...Map.groupBy(kinds.uncovered, ({ scope }) => scope)].map(
      ([scope, those]) => `  not covered: ${scope} ${those.map(({ ruleType }) => ruleType).join(', ')}`,
    ),
  ];
}

const shareLine = (what: string, share: Share<unknown>, { paint }: TextOptions): string =>
  paint(
    share.uncovered.length === 0 ? 'green' : 'yellow',
    `${what.padEnd(28)} ${share.covered} of ${share.total} (${percentText(percentage(share))})`,
  );

/** Rounded down, so that 100 % means all. */
const percentText = (percent: number): string => `${Math.floor(percent * 10) / 10} %`;

/** A rule with its owner, and where it is from. */
export function ruleText({ scope, owner, rule, storedId, place }: GivenRule, cwd: string): string {
  const whose = owner === undefined ? scope : `${scope} ${owner}`;
  const stored = storedId === undefined || storedId === rule.id ? '' : `, stored as ${storedId}`;
  const where = place === undefined ? '' : `  ${placeText(place, cwd)}`;
  return `${rule.id} (${whose}, ${rule.ruleType}${stored})${where}`;
}
