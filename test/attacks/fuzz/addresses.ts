// Generators of paths and queries, and of lists of models.
import type { Random } from '../../crash/random.ts';
import { type Attack, bearer } from './attack.ts';
import { anyKey, type Generator } from './calls.ts';
import { type Lengths, LONG, SHORT, times } from './lengths.ts';

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
  const lists = Array.from({ length: random.pick([1, 1, 5, 32]) }, () =>
    attack.send({
      path: `/v1/models?${flags(random)}`,
      headers: random.chance(0.7)
        ? [bearer(key), ...(random.chance(0.5) ? [['x-forwarded-for', '10.1.2.3'] as const] : [])]
        : [],
    }),
  );
  await Promise.all(lists);
};
