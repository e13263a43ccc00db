import { type Command, InvalidArgumentError, Option } from 'commander';
import { entryOf } from '../../lib/text.ts';

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000 };

/** `2s` in ms. */
function parseSlowerThan(text: string): number {
  const [, digits = '', unit = ''] = /^([0-9]{1,6}(?:\.[0-9]{1,3})?)(ms|s|m)$/.exec(text) ?? [];
  const length = entryOf(UNITS, unit);
  if (length === undefined) throw new InvalidArgumentError('Write a number and ms, s or m, such as 2s or 500ms.');
  return Math.round(Number(digits) * length);
}

/** What calls and decisions are searched by, but for their time. */
export const filterOptions = (command: Command): Command =>
  command
    .option('--key <key>', 'id, masked token or description')
    .option('--member <member>', "with one member's keys: membership id or e-mail")
    .option('--model <model>', 'that was asked for, or that served')
    .option('--provider <provider>', 'that served')
    .addOption(new Option('--outcome <outcome>', 'of the policy').choices(['permit', 'deny']))
    .option('--reason <type>', 'what denied, such as deny_models')
    .option('--rule <id>', 'that was violated, or stands in a shadow decision')
    .option('--group <group>', 'that the key or its owner was in: id, or name')
    .option('--address <address>', "the caller's, or a CIDR range in which it lies")
    .option('--request <id>', "the request's id, or the caller's own")
    .addOption(new Option('--slower-than <time>', 'that took longer: 2s, 500ms').argParser(parseSlowerThan));

/** Which page of a list. */
export const pageOptions = (command: Command): Command =>
  command
    .option('--limit <n>', 'how many at most, 1 to 200 (default: 50)')
    .option('--cursor <cursor>', 'where the page before ended');
