import { ApiError } from '../../domain/errors.ts';
import { factsOf, RULE_TYPES } from '../../domain/iam-rule.ts';
import { conditionOptions } from './rule-options.ts';

/** By which option the command line takes a field of a request, or what it calls an argument. */
const OPTIONS: Readonly<Record<string, string>> = {
  usageLimit: '--limit',
  periodUsageLimit: '--period-limit',
  periodUsageDurationValue: '--period',
  description: '--description',
  expiresAt: '--ttl',
  baseUrl: '--base-url',
  overlap: '--overlap',
  label: '--label',
  position: '--position',
  token: 'The token',
  ownerEmail: '--owner',
  address: '--address',
  email: 'The e-mail',
  name: 'The name',
  pricing: '--price',
  displayName: '--display-name',
  contextLength: '--context-length',
  maxOutput: '--max-output',
  inputModalities: '--input',
  outputModalities: '--output',
  supportedParameters: '--parameters',
  cacheDurationSeconds: '--cache-seconds',
  granularity: '--by',
  groupBy: '--group-by',
  from: '--from',
  to: '--to',
  tags: '--tags',
  ...Object.fromEntries(RULE_TYPES.flatMap((type) => factsOf(type).list ?? []).map((list) => [list, 'The entry'])),
  ...Object.fromEntries(
    Object.values(conditionOptions()).flatMap(({ fields }) =>
      Object.entries(fields).map(([field, { long }]) => [field, long ?? field]),
    ),
  ),
};

/** Faults of what was named as a whole. */
const SENTENCES: Readonly<Record<string, string>> = {
  'The request body must hold at least one field.': 'Say what to change: --help lists the options.',
  '/ruleValue must hold at least one field.': 'The rule would have no condition left: rules remove takes it away.',
};

/**
 * What a refused request says, in the words of the command line: with the option in the place of the field that it filled.
 * Undefined: the fault lies in no option.
 */
export function optionFault(error: unknown): string | undefined {
  if (!(error instanceof ApiError) || error.status !== 400 || error.param === null) return undefined;
  const sentence = SENTENCES[error.message];
  if (sentence !== undefined) return sentence;
  const [, field = '', rest = ''] = /^\/(?:ruleValue\/)?([A-Za-z]+)((?:\/.*)?)$/.exec(error.param) ?? [];
  const option = OPTIONS[field];
  if (option === undefined) return undefined;
  const isOption = option.startsWith('--');
  if (!error.message.startsWith(error.param)) return isOption ? `${option}: ${error.message}` : error.message;
  // An entry is recognized by its text, which the message quotes.
  const place = isOption && rest !== '' ? `${option} ${rest.slice(1)}` : option;
  // Null is written "none" on the command line.
  return `${place}${error.message.slice(error.param.length).replace(' must be null or ', ' must be "none" or ')}`;
}
