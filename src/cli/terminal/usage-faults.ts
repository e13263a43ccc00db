import { Option } from 'commander';
import { ApiError, phrase, type Wording } from '../../domain/errors.ts';
import { type ConditionFields, factsOf, RULE_TYPES } from '../../domain/iam-rule.ts';
import { entryOf } from '../../lib/text.ts';

/** The command line asks for something that makes no sense: exit code 2, like an unknown option. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** Commander's message for a faulty command line, without its jargon. */
export function inOurWords(text: string): string {
  const said = text.trimEnd().replace(/^error: /, '');
  const value = 'command-argument value ';
  const argument = said.lastIndexOf(" is invalid for argument '");
  if (said.startsWith(value) && argument !== -1) {
    const [, name = '', rest = ''] = /^ is invalid for argument '([^']*)'\.([\s\S]*)$/.exec(said.slice(argument)) ?? [];
    return `<${name}>: ${said.slice(value.length, argument)} is not valid.${rest}`;
  }
  return said.replace(/^option '([^']*)' argument /, '$1: ').replace(' is invalid. ', ' is not valid. ');
}

/** Options by the field of the value that they fill, of each kind whose value is conditions. */
type ConditionOptions = {
  readonly [Kind in keyof ConditionFields]: {
    /** The name of the arguments in a sentence. */
    readonly called: string;
    readonly fields: Readonly<Record<ConditionFields[Kind], Option>>;
  };
};

/** The options that state conditions. @param more a word that each takes as well, when it has choices */
export const conditionOptions = (...more: string[]): ConditionOptions => ({
  pricing: {
    called: 'Price options',
    fields: {
      pricingType: new Option('--type <type>', 'pricing rules: the type of price').choices(['free', 'paid', ...more]),
      maxInputPrice: new Option('--max-input-price <usd>', 'pricing rules: USD per million input tokens'),
      maxOutputPrice: new Option('--max-output-price <usd>', 'pricing rules: USD per million output tokens'),
    },
  },
});

/** The option or argument of the command line for each field of a request. */
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
  weights: '--weights',
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
  limit: '--limit',
  cursor: '--cursor',
  keyId: '--key',
  memberId: '--member',
  groupId: '--group',
  ruleId: '--rule',
  reason: '--reason',
  revision: '--revision',
  requestId: '--request',
  clientRequestId: '--request',
  targetId: '--target',
  model: 'The model',
  provider: 'The provider',
  target: 'The target',
  ...Object.fromEntries(RULE_TYPES.flatMap((type) => factsOf(type).list ?? []).map((list) => [list, 'The entry'])),
  ...Object.fromEntries(
    Object.values(conditionOptions()).flatMap(({ fields }) =>
      Object.entries(fields).map(([field, { long }]) => [field, long ?? field]),
    ),
  ),
};

const NO_CHANGE = 'Say what to change: --help lists the options.';
const NO_CONDITION = 'The rule would have no condition left: use rules remove instead.';

/** A JSON pointer to a field of a request, or to a part of one. */
const POINTER = /^\/(?:ruleValue\/)?([A-Za-z]+)((?:\/.*)?)$/;

/** The option or argument that fills a field, with the entry of it; undefined: none does. */
function optionOf(pointer: string): string | undefined {
  const [, field = '', rest = ''] = POINTER.exec(pointer) ?? [];
  const option = entryOf(OPTIONS, field);
  // An argument's entry is recognized by its text, which the message quotes.
  return option?.startsWith('--') && rest !== '' ? `${option} ${rest.slice(1)}` : option;
}

/** Null is written "none" on the command line. */
const COMMAND_LINE: Wording = { field: (pointer) => optionOf(pointer) ?? pointer.slice(1), nothing: '"none"' };

/**
 * A refused request in the words of the command line: with the option in the place of the field that it filled. What an option
 * holds is wrong usage; what an argument names may also be refused for what is there already.
 */
export function inOptions(error: unknown): unknown {
  if (!(error instanceof ApiError) || error.status !== 400) return error;
  const { fault, param, message } = error;
  if (fault?.kind === 'empty' && fault.pointer === '') return new UsageError(NO_CHANGE);
  if (fault?.kind === 'empty' && fault.pointer === '/ruleValue') return new UsageError(NO_CONDITION);
  const option = param === null ? undefined : optionOf(param);
  if (option === undefined) return error;
  if (fault !== undefined) return new UsageError(phrase(fault, COMMAND_LINE));
  return option.startsWith('--') ? new UsageError(`${option}: ${message}`) : new Error(message);
}
