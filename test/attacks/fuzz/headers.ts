// Generators of headers: odd, repeated, too many, too long.
import type { Random } from '../../crash/random.ts';
import { type Attack, bearer, type Header, JSON_TYPE } from './attack.ts';
import { anyKey, type Generator } from './calls.ts';
import { type Lengths, LONG, SHORT, times } from './lengths.ts';
import { chatBody } from './requests.ts';

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
