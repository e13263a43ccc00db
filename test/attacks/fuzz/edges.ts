// Generators of what stands around a body: headers, paths, queries, lists.
import type { Random } from '../../crash/random.ts';
import { type Attack, bearer, type Header, JSON_TYPE } from './attack.ts';
import { anyKey, type Generator } from './calls.ts';
import { chatBody } from './requests.ts';

const times = (count: number, text: string): string => text.repeat(count);

/** Characters of what is repeated. */
type Lengths = readonly [number, ...number[]];
const SHORT: Lengths = [10, 100];
/** Around what the product, or Node, takes at most. */
const LONG: Lengths = [4000, 7900, 8200, 12_000, 15_000];

/** Text of a header that is slow to match, too long, or odd. */
const oddText = (random: Random, lengths: Lengths): string => {
  const length = random.pick(lengths);
  return random.pick([
    times(length, ' '),
    `a${times(length, ' ')}a`,
    `${times(length, '\t')}x`,
    times(length / 2, 'a '),
    times(length / 2, ', '),
    times(length / 2, '1,'),
    times(length / 4, '1.1.'),
    times(length / 2, ':0'),
    times(length, ':'),
    times(length, '/'),
    times(length, '"'),
    times(length, '='),
    times(length, ';'),
    times(length / 2, '%2'),
    times(length, 'é'),
    '',
    ' ',
    '\u00ff\u00fe',
    'bearer',
    'null',
  ]);
};

const NAMES = [
  'x-forwarded-for',
  'authorization',
  'x-api-key',
  'content-type',
  'content-encoding',
  'host',
  'x-request-id',
  'x-no-cache',
  'x-no-fallback',
  'x-metadata-form',
  'accept',
  'accept-encoding',
  'accept-language',
  'if-none-match',
  'if-modified-since',
  'range',
  'origin',
  'cookie',
  'te',
  'upgrade',
  'connection',
  'forwarded',
  'via',
  'x-real-ip',
  'x-http-method-override',
  'user-agent',
  'referer',
  'traceparent',
  'expect',
  'x-fuzz',
  '__proto__',
  'constructor',
] as const;

const oddHeader = (random: Random, lengths: Lengths): Header => {
  const name = random.pick(NAMES);
  return [
    name,
    name === 'authorization' && random.chance(0.5) ? `Bearer ${oddText(random, lengths)}` : oddText(random, lengths),
  ];
};

const SMALL_HEADERS: readonly [Header, ...Header[]] = [
  ['content-type', 'application/json; charset=utf-16'],
  ['content-type', 'text/plain'],
  ['content-type', 'application/jsonp'],
  ['content-encoding', 'gzip'],
  ['transfer-encoding', 'identity'],
  ['host', 'evil.example'],
  ['host', '127.0.0.1:99999'],
  ['host', ''],
  ['x-request-id', 'x'.repeat(65)],
  ['x-request-id', 'a b'],
  ['x-http-method-override', 'DELETE'],
  ['content-length', '5'],
  ['authorization', 'Basic cGNsOng='],
  ['authorization', `Bearer pcl_${'a'.repeat(46)}`],
  ['if-none-match', '*'],
  ['connection', 'close, x-fuzz'],
  ['expect', 'odd'],
];

/** A good call under headers that are not. */
async function callUnderHeaders(attack: Attack, lengths: Lengths): Promise<void> {
  const { random } = attack;
  const key = anyKey(attack);
  const mark = attack.mark(key, { isNamed: false });
  const extra: Header[] = random.pick([
    () => [oddHeader(random, lengths)],
    () => [oddHeader(random, lengths), oddHeader(random, lengths)],
    () => [random.pick(SMALL_HEADERS)],
    () => [bearer(random.pick(attack.run.world.keys))],
    () => [['x-api-key', random.pick(attack.run.world.keys).token] as const],
    () => Array.from({ length: random.pick([20, 200, 990, 1990]) }, (_, at): Header => [`x-${at}`, '']),
    () =>
      Array.from(
        { length: random.pick([20, 500]) },
        (): Header => ['x-forwarded-for', random.pick(['', '10.1.2.3', ' '])],
      ),
  ] as const)();
  // What comes first counts for some headers, and last for others.
  const usual: Header[] = random.chance(0.1) ? [JSON_TYPE] : [bearer(key), JSON_TYPE];
  const lines = random.chance(0.5) ? [...extra, ...usual] : [...usual, ...extra];
  // Whose call it is, and from where, only a plain request tells.
  const isPlain = extra.every(([name]) => !['x-forwarded-for', 'authorization', 'x-api-key'].includes(name));
  const body = Buffer.from(JSON.stringify(chatBody(random, isPlain ? mark : 'no mark')));
  const world = random.pick(['gateway', 'gateway', 'management'] as const);
  if (world === 'management') await attack.send({ listener: world, path: '/v1/master/keys', headers: extra });
  else await attack.send({ method: 'POST', path: '/v1/chat/completions', headers: lines, body });
}

export const headers: Generator = (attack) => callUnderHeaders(attack, SHORT);
export const longHeaders: Generator = (attack) => callUnderHeaders(attack, LONG);

const PATHS = [
  '/v1/models',
  '/v1/models/',
  '/v1/chat/completions',
  '/v1/images/generations',
  '/v1/moderations',
  '/v1/master/keys',
  '/health',
  '/ready',
  '/metrics',
  '/openapi.json',
  '/reference',
  '/',
  '*',
  '/v1',
  '/v1/models/auto',
  '/v1/models/openai/gpt-5.2',
  '/v1/master/usage',
  '/v1/master/audit',
  '/v1/master/organization',
  '/mcp',
  '/oauth/token',
] as const;

const oddPath = (random: Random, lengths: Lengths): string => {
  const path = random.pick(PATHS);
  const length = random.pick(lengths);
  return random.pick([
    path,
    `${path}/${times(length, 'a')}`,
    `${path}/${times(length / 3, '%2f')}`,
    `${times(length, '/')}`,
    `/v1/models/${times(length / 2, 'a/')}`,
    `${path}/..%2f..%2f..%2fetc%2fpasswd`,
    `/v1/models/%`,
    `/v1/models/%00`,
    `/v1/models/%ff%fe`,
    `/v1/models/%ed%a0%80`,
    `/v1/models/__proto__`,
    `/v1/models/constructor`,
    path.toUpperCase(),
    `http://evil.example${path}`,
    `/\\evil.example`,
    `/.${path}`,
    `${path};a=b`,
    `/v1//chat/completions`,
  ]);
};

const PARAMETERS = [
  'limit',
  'cursor',
  'from',
  'to',
  'granularity',
  'groupBy',
  'format',
  'projectId',
  'keyId',
  'kind',
  'provider',
  'action',
  'targetId',
  'include_deactivated',
  'exclude_deprecated',
  'no_training',
  'mapped',
  'include_restricted',
  'withoutCredential',
  '__proto__',
  'a',
] as const;

const oddQuery = (random: Random, lengths: Lengths): string => {
  const length = random.pick(lengths);
  const value = random.pick([
    '',
    'true',
    '1',
    '0',
    '-1',
    '1e9',
    '%',
    '%00',
    'x'.repeat(500),
    '2026-01-01T00:00:00Z',
    'day',
    'csv',
    '%ff',
    "'",
  ]);
  const name = random.pick(PARAMETERS);
  return random.pick([
    '',
    `?${name}=${value}`,
    `?${name}=${value}&${random.pick(PARAMETERS)}=${value}`,
    `?${name}=${value}&${name}=${value}`,
    `?${name}[]=${value}&${name}[a]=${value}`,
    `?${times(length / 2, 'a&')}`,
    `?${times(length / 2, '&a')}=`,
    `?${times(length / (name.length + 1), `${name}&`)}`,
    `?${times(length / 4, 'a=b&')}`,
    `?${times(length, '=')}`,
    `?${times(length, '%')}`,
    `?${times(length / 3, '%41')}`,
    `?${times(length, '+')}`,
    `?${times(length, '?')}`,
    `?${Array.from({ length: Math.floor(length / 6) }, (_, at) => `p${at}=`).join('&')}`,
    `?${name}=${times(length, 'x')}`,
  ]);
};

const METHODS = [
  'GET',
  'GET',
  'GET',
  'POST',
  'HEAD',
  'OPTIONS',
  'PUT',
  'PATCH',
  'DELETE',
  'TRACE',
  'PROPFIND',
  'QUERY',
] as const;

/** Paths and queries that nobody means, on both listeners, with a key and without. */
async function callAddress(attack: Attack, lengths: Lengths): Promise<void> {
  const { random, run } = attack;
  const listener = random.pick(['gateway', 'management'] as const);
  const key = anyKey(attack);
  const token = listener === 'gateway' ? key.token : run.world.attacker.tenant.masterKey.token;
  await attack.send({
    listener,
    method: random.pick(METHODS),
    path: `${oddPath(random, lengths)}${oddQuery(random, lengths)}`,
    headers: random.chance(0.5) ? [bearer({ token })] : [],
    own: token,
  });
}

export const addresses: Generator = (attack) => callAddress(attack, SHORT);
export const longAddresses: Generator = (attack) => callAddress(attack, LONG);

const flags = (random: Random): string =>
  ['include_deactivated', 'exclude_deprecated', 'no_training', 'mapped', 'include_restricted']
    .filter(() => random.chance(0.4))
    .map((name) => `${name}=${random.pick(['true', '1', 'false', ''])}`)
    .join('&');

/** The lists of models, with every flag, for keys of all rules, and many at once. */
export const modelLists: Generator = async (attack) => {
  const { random } = attack;
  const key = anyKey(attack);
  const lists = Array.from({ length: random.pick([1, 1, 5, 40]) }, () =>
    attack.send({
      path: `/v1/models?${flags(random)}`,
      headers: random.chance(0.7)
        ? [bearer(key), ...(random.chance(0.5) ? [['x-forwarded-for', '10.1.2.3'] as const] : [])]
        : [],
    }),
  );
  await Promise.all(lists);
};
