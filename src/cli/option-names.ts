import { ApiError } from '../domain/errors.ts';

/** By which option the command line takes a field of a request, where there is one for it. */
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
  token: 'the token',
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
  maxInputPrice: '--max-input-price',
  maxOutputPrice: '--max-output-price',
};

const NOTHING_NAMED = /^The request body must hold at least one field\.$/;

/**
 * What a refused request says, in the words of the command line: with the option in the place of the field that it filled.
 * Undefined: the fault lies in no option.
 */
export function optionFault(error: unknown): string | undefined {
  if (!(error instanceof ApiError) || error.status !== 400 || error.param === null) return undefined;
  if (NOTHING_NAMED.test(error.message)) return 'Say what to change: --help lists the options.';
  const [, field = '', rest = ''] = /^\/(?:ruleValue\/)?([A-Za-z]+)((?:\/.*)?)$/.exec(error.param) ?? [];
  const option = OPTIONS[field];
  if (option === undefined) return undefined;
  const place = rest === '' ? option : `${option} ${rest.slice(1)}`;
  return error.message.startsWith(error.param)
    ? `${place}${error.message.slice(error.param.length)}`
    : `${place}: ${error.message}`;
}
