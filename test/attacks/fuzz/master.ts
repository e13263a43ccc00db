// Generators of the master API: an attacker who administers one organization and would like to administer others.
import { CASES } from '../../../src/policy/self-test.ts';
import { isRecord } from '../../../src/providers/wire/fields.ts';
import type { Random } from '../../crash/random.ts';
import { type Attack, bearer, JSON_TYPE } from './attack.ts';
import type { Generator } from './calls.ts';
import { bytesOf } from './requests.ts';
import { IMAGE_MODELS } from './served.ts';

type Ids = readonly [string, ...string[]];
type Make = (random: Random, ids: Ids) => object;

const amount = (random: Random): string =>
  random.pick(['0', '0.01', '5', '9000000', '9000001', '-1', '1e3', '0.0000000000001']);
const text = (random: Random): string =>
  random.pick(['Name', ' ', '=cmd()', '\u202e', 'x'.repeat(256), 'x'.repeat(257), '\ud800', '<b>']);

const OF_EACH_TYPE = Object.values(CASES).map(([[{ ruleType, ruleValue }]]) => [ruleType, ruleValue] as const);

const ruleBody: Make = (random) => {
  const [ruleType, ruleValue] = random.pick<readonly [string, object]>([
    ['allow_models', { models: ['shared', 'gpt*', '*'] }],
    ['deny_models', { models: Array.from({ length: random.pick([1, 50, 1000, 1001]) }, (_, at) => `model-${at}*`) }],
    ['allow_providers', { providers: ['alpha', 'custom', 'custom:own'] }],
    ['deny_providers', { providers: ['own', 'custom:x'] }],
    ['allow_pricing', { pricingType: 'free', maxInputPrice: amount(random) }],
    ['deny_pricing', { maxOutputPrice: 15 }],
    ['allow_ip_cidrs', { ipCidrs: ['10.0.0.0/8', '::/0', '::ffff:10.0.0.0/104'] }],
    [
      'deny_ip_cidrs',
      { ipCidrs: [random.pick(['0.0.0.0/0', '10.0.0.1', '300.1.1.1/8', '::1/129', '1.2.3.4/08', 'x'])] },
    ],
    ...OF_EACH_TYPE,
  ]);
  return {
    ruleType,
    ruleValue,
    ...(random.chance(0.3) ? { mode: random.pick(['report', 'enforce']), description: text(random) } : {}),
  };
};

const keyBody: Make = (random, ids) => ({
  projectId: random.pick(ids),
  description: text(random),
  ...(random.chance(0.5) ? { usageLimit: amount(random) } : {}),
  ...(random.chance(0.3)
    ? {
        periodUsageLimit: amount(random),
        periodUsageDurationValue: random.pick([1, 12, 8760, 8761]),
        periodUsageDurationUnit: random.pick(['hour', 'month']),
      }
    : {}),
});

const BASE_URLS: Ids = [
  'https://models.example/v1',
  'http://127.0.0.1:1/v1',
  'http://localhost:8081/v1',
  'http://169.254.169.254/latest',
  'http://[::1]:8080/',
  'http://0x7f.1/',
  'http://2130706433/',
  'http://[::ffff:127.0.0.1]/',
  'http://10.0.0.1/',
  'https://user:pw@models.example/',
  'file:///etc/passwd',
  'http://127.0.0.1.nip.example/',
  'gopher://x/',
  'https://models.example/v1?x=1',
  'http://metadata.google.internal/',
];

const RESOURCES: readonly [readonly [path: string, make: Make], ...(readonly [string, Make])[]] = [
  ['keys', keyBody],
  ['organization/iam', ruleBody],
  ['projects', (random) => ({ name: text(random), cacheDurationSeconds: random.pick([9, 10, 60, 31536001]) })],
  [
    'invitations',
    (random) => ({ email: `${random.between(0, 9999)}@x.example`, role: random.pick(['developer', 'admin', 'owner']) }),
  ],
  ['master-keys', (random) => ({ description: text(random) })],
  ['platform-keys', (random, ids) => ({ projectId: random.pick(ids), description: text(random) })],
  [
    'custom-providers',
    (random) => ({
      name: `p-${'abcdefghij'[random.between(0, 9)]}`,
      baseUrl: random.pick(BASE_URLS),
      keyless: true,
      wire: random.pick(['openai', 'google', 'anthropic']),
    }),
  ],
  [
    'custom-models',
    (random, ids) => ({
      customProviderId: random.pick(ids),
      model: `m${random.between(0, 20)}`,
      pricing: { prompt: amount(random) },
    }),
  ],
  [
    'provider-keys',
    (random) => ({
      provider: random.pick(['openai', 'google', 'custom:p-a']),
      label: text(random),
      token: `sk-theirs-${random.between(0, 99)}`,
    }),
  ],
  [
    'policy/evaluate',
    (random, ids) => ({ key: random.pick(ids), request: { model: random.pick(IMAGE_MODELS), address: '10.1.2.3' } }),
  ],
  ['policy/diff', (random, ids) => ({ rules: [{ organization: true, ...ruleBody(random, ids) }] })],
];

const LISTS: Ids = [
  'keys',
  'keys?kind=playground',
  'projects',
  'members',
  'invitations',
  'master-keys',
  'platform-keys',
  'provider-keys',
  'custom-providers',
  'custom-models',
  'organization',
  'organization/iam',
  'budgets',
  'usage?granularity=total&groupBy=key,model',
  'usage?format=csv',
  'audit?limit=200',
];

/** Ids of the attacker's own organization, as answers told them, newest last. */
const known: string[] = [];
const MOST_KNOWN = 200;

/** Their own, others', and what is none. */
function idsFor({ random, run: { world } }: Attack): Ids {
  const foreign = [
    world.attacked.project.id,
    world.attacked.owner.id,
    world.keys[0].id,
    world.bystander.tenant.project.id,
    world.toggled.id,
  ];
  const own = known.length === 0 ? [world.attacker.tenant.project.id] : known.slice(-30);
  return random.pick<Ids>([
    [world.attacker.tenant.project.id, ...own],
    [world.attacker.tenant.project.id, ...own],
    [world.attacked.organization.id, ...foreign],
    ['key_', 'x', '..%2f', '%00', 'key_00000000000000000000000000000000', '__proto__', "' OR 1=1 --"],
  ]);
}

/** Tokens of invitations: none, and those that were made. */
const INVITATIONS: [string, ...string[]] = ['pcli_none'];

const OF_OTHERS = 'nobody sees or changes another organization';

function learn(attack: Attack, json: unknown, body: string): void {
  const { world, secrets } = attack.run;
  const { tenant, key } = world.attacker;
  const kept = [tenant.masterKey.id, tenant.owner.id, tenant.project.id, key.id]; // without them the attacker could do no more
  for (const [, id] of body.matchAll(/"id":"((?:key|proj|rule|prov|model|pkey|inv|mkey|mem)_[0-9a-f]{32})"/g)) {
    if (id !== undefined && !known.includes(id) && !kept.includes(id)) known.push(id);
  }
  known.splice(0, Math.max(0, known.length - MOST_KNOWN));
  for (const made of isRecord(json) ? Object.values(json) : []) {
    if (!isRecord(made) || typeof made.token !== 'string') continue;
    secrets.add(made.token, `a key that was made (${made.token.slice(0, 5)}…)`);
    if (made.token.startsWith('pcli_')) INVITATIONS.push(made.token);
  }
}

/** One request of the master API, in the attacker's own name. */
export const master: Generator = async (attack) => {
  const { random, run } = attack;
  const { attacker, attacked, bystander, keys } = run.world;
  const ids = idsFor(attack);
  const [resource, make] = random.pick(RESOURCES);
  const id = random.pick(ids);
  const [method, path, body] = random.pick<() => readonly [string, string, object?]>([
    () => ['GET', random.pick(LISTS)],
    () => ['GET', `${resource.split('/')[0]}/${id}${random.pick(['', '/iam', '/access'])}`],
    () => ['POST', resource, make(random, ids)],
    () => ['POST', resource, make(random, ids)],
    () => ['POST', `${random.pick(['keys', 'members'])}/${id}/iam`, ruleBody(random, ids)],
    () => ['PATCH', `${resource}/${id}`, make(random, ids)],
    () => [
      'PATCH',
      `keys/${id}`,
      random.pick<object>([{ status: 'inactive' }, { usageLimit: amount(random) }, { description: text(random) }]),
    ],
    () => ['PATCH', `keys/${random.pick(ids)}/iam/${id}`, ruleBody(random, ids)],
    () => [
      'DELETE',
      `${random.pick(['keys', 'projects', 'custom-providers', 'custom-models', 'provider-keys', 'platform-keys', 'invitations', 'master-keys'])}/${id}`,
    ],
    () => ['DELETE', `keys/${random.pick(ids)}/iam/${id}`],
    () => ['DELETE', `organization/iam/${id}`],
    () => [
      random.pick(['PATCH', 'DELETE']),
      `members/${id}`,
      { name: text(random), role: random.pick(['developer', 'admin', 'owner', 'root']) },
    ],
    () => ['PATCH', 'organization', { name: text(random), plan: random.pick(['free', 'enterprise', 'odd']) }],
    () => [
      'PATCH',
      random.pick([`members/${id}/budget`, `projects/${id}/budget`, 'organization/budget']),
      { usageLimit: random.pick([null, amount(random)]) },
    ],
    () => ['POST', 'invitations/accept', { token: random.pick(INVITATIONS), name: text(random) }],
  ])();
  const answer = await attack.send({
    listener: 'management',
    method,
    path: `/v1/master/${path}`,
    headers: [bearer(attacker.tenant.masterKey), JSON_TYPE],
    own: attacker.tenant.masterKey.token,
    ...(body === undefined ? {} : { body: bytesOf(random, body) }),
  });
  if (answer === undefined || answer.status >= 300) return;
  learn(attack, answer.json, answer.text);
  const others = [attacked, bystander.tenant].flatMap(({ organization, project, owner }) => [
    organization.id,
    project.id,
    owner.id,
  ]);
  const seen = [...others, ...keys.map((key) => key.id)].find(
    (each) => answer.text.includes(each) && !path.includes(each),
  );
  if (seen !== undefined) attack.broken(OF_OTHERS, `${method} ${path} tells ${seen}: ${answer.text.slice(0, 300)}`);
  if (others.some((each) => path.includes(each))) attack.broken(OF_OTHERS, `${method} ${path}: ${answer.status}`);
};
