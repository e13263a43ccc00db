// Generators of calls: bodies of every kind, and upstreams that fail them in every way.
import type { Random } from '../../crash/random.ts';
import { type Attack, bearer, type Header, JSON_TYPE } from './attack.ts';
import { HONEST } from './honest-faults.ts';
import { LARGE } from './large-faults.ts';
import { LYING } from './lying-faults.ts';
import { bytesOf, chatBody, imageBody, largeBody, moderationBody, plainChat } from './requests.ts';
import { DRAWING_MODELS } from './served.ts';
import type { WorldKey } from './world.ts';

export type Generator = (attack: Attack) => Promise<void>;

/** Lines of `X-Forwarded-For`. */
export function forwardedFor(random: Random): string[] {
  return random.pick<string[]>([
    [],
    [],
    ['10.1.2.3'],
    ['10.1.2.3'],
    ['203.0.113.7'],
    ['192.0.2.1, 10.0.0.1'],
    ['10.1.2.3', '192.0.2.1'],
    [' \t10.1.2.3 , 8.8.8.8'],
    ['2001:db8::1'],
    ['2001:DB8:BAD:0::1'],
    ['2001:db8:bad::1%eth0'],
    ['::ffff:10.1.2.3'],
    ['::ffff:c000:0201'],
    ['010.1.2.3'],
    ['10.1.2.3:80'],
    ['[2001:db8::1]'],
    ['0x0a.1.2.3'],
    ['167838211'],
    [',10.1.2.3'],
    [''],
    ['unknown'],
    ['10.1.2.3\u00a0'],
    ['10.1.2.256'],
    ['for=10.1.2.3'],
  ]);
}

/** Often one that may call anything, for a refused call goes no further. */
export function anyKey({ random, run: { world } }: Attack): WorldKey {
  if (random.chance(0.1)) return world.attacker.key;
  return random.chance(0.3) ? world.keys[0] : random.pick(world.keys);
}

const line = (name: string, values: readonly string[]): Header[] => values.map((value) => [name, value]);

interface Options {
  readonly key?: WorldKey;
  readonly fault?: string;
  /** The client stays until it is answered. */
  readonly waits?: boolean;
  readonly leaveAfterMs?: number;
}

/** Posts a call whose body `make` makes around its mark. */
export async function call(
  attack: Attack,
  path: string,
  make: (mark: string) => Buffer,
  options: Options = {},
): Promise<void> {
  const { random } = attack;
  const {
    key = anyKey(attack),
    fault,
    waits = false,
    leaveAfterMs = !waits && random.chance(0.08) ? random.between(0, 200) : undefined,
  } = options;
  const addresses = forwardedFor(random);
  const mark = attack.mark(key, { forwardedFor: addresses, fault });
  await attack.send({
    method: 'POST',
    path,
    headers: [
      bearer(key),
      JSON_TYPE,
      ['x-request-id', mark],
      ['x-fuzz', 'this header stays here'],
      ...line('x-forwarded-for', addresses),
      ...(random.chance(0.1) ? line('x-no-cache', ['true']) : []),
      ...(random.chance(0.1) ? line('x-no-fallback', ['true']) : []),
      ...(random.chance(0.05) ? line('x-metadata-form', ['strings']) : []),
    ],
    body: make(mark),
    own: key.token,
    mark,
    ...(leaveAfterMs === undefined ? {} : { leaveAfterMs }),
  });
}

export const chats: Generator = (attack) =>
  call(attack, '/v1/chat/completions', (mark) => bytesOf(attack.random, chatBody(attack.random, mark)));

export const images: Generator = (attack) =>
  call(attack, '/v1/images/generations', (mark) => bytesOf(attack.random, imageBody(attack.random, mark)));

export const drawings: Generator = (attack) =>
  call(attack, '/v1/images/generations', (mark) => {
    const { model, ...body } = imageBody(attack.random, mark, attack.random.pick(DRAWING_MODELS));
    return bytesOf(attack.random, attack.random.chance(0.2) ? body : { model, ...body });
  });

export const moderations: Generator = (attack) =>
  call(attack, '/v1/moderations', (mark) => bytesOf(attack.random, moderationBody(attack.random, mark)));

export const largeBodies: Generator = (attack) => {
  const path = attack.random.pick([
    '/v1/chat/completions',
    '/v1/chat/completions',
    '/v1/images/generations',
    '/v1/moderations',
  ]);
  return call(attack, path, (mark) => largeBody(attack.random, mark));
};

type Names = readonly [string, ...string[]];
const namesOf = (faults: object): Names => {
  const [first, ...rest] = Object.keys(faults);
  if (first === undefined) throw new Error('no faults');
  return [first, ...rest];
};

const HONEST_FAULTS = namesOf(HONEST);
const SMALL_FAULTS = namesOf({ ...HONEST, ...LYING });
const LARGE_FAULTS = namesOf(LARGE);

const valid =
  ({ random }: Attack): ((mark: string) => Buffer) =>
  (mark) =>
    Buffer.from(JSON.stringify(random.chance(0.7) ? plainChat(random, mark) : chatBody(random, mark)));

/** A good request whose upstreams fail. */
export const answers: Generator = (attack) => {
  const { random } = attack;
  const key = anyKey(attack);
  const fault = random.pick(key.spec.mayBeLiedTo === true ? SMALL_FAULTS : HONEST_FAULTS);
  if (random.chance(0.1)) {
    return call(attack, '/v1/images/generations', (mark) => Buffer.from(JSON.stringify(imageBody(random, mark))), {
      key,
      fault,
    });
  }
  if (random.chance(0.05)) {
    return call(attack, '/v1/moderations', (mark) => Buffer.from(JSON.stringify(moderationBody(random, mark))), {
      key,
      fault,
    });
  }
  return call(attack, '/v1/chat/completions', valid(attack), { key, fault });
};

export const largeAnswers: Generator = (attack) => {
  const liars = attack.run.world.keys.filter(({ spec }) => spec.mayBeLiedTo === true);
  const key = attack.random.pick([attack.run.world.attacker.key, ...liars]);
  return call(attack, '/v1/chat/completions', valid(attack), { key, fault: attack.random.pick(LARGE_FAULTS) });
};

let isToggling = false;

/** A rule comes and goes; once the administrator has been answered it holds for every call. */
export const ruleChanges: Generator = async (attack) => {
  if (isToggling) return chats(attack);
  isToggling = true;
  try {
    await forbidAndPermit(attack);
  } finally {
    isToggling = false;
  }
};

async function forbidAndPermit(attack: Attack): Promise<void> {
  const { random, run } = attack;
  const { toggled, attacked } = run.world;
  const headers: Header[] = [['authorization', `Bearer ${attacked.masterKey.token}`], JSON_TYPE];
  const own = attacked.masterKey.token;
  const path = `/v1/master/keys/${toggled.id}`;
  const [forbid, permit] = random.pick<readonly [object, object?]>([
    [{ status: 'inactive' }, { status: 'active' }],
    [{ usageLimit: '0' }, { usageLimit: null }],
    [{ ruleType: 'deny_providers', ruleValue: { providers: ['alpha', 'beta', 'openai'] } }],
    [{ ruleType: 'allow_models', ruleValue: { models: ['nothing'] } }],
  ]);
  const ask = (method: string, at: string, body?: object) =>
    attack.send({
      listener: 'management',
      method,
      path: at,
      headers,
      own,
      ...(body === undefined ? {} : { body: Buffer.from(JSON.stringify(body)) }),
    });
  const changed = permit === undefined ? await ask('POST', `${path}/iam`, forbid) : await ask('PATCH', path, forbid);
  if (changed === undefined) return;
  const isForbidden = changed.status === 200 || changed.status === 201;
  if (isForbidden) await Promise.all(Array.from({ length: 4 }, () => callForbidden(attack)));
  const rule = /"id":"(rule_[0-9a-f]+)"/.exec(changed.text)?.[1];
  if (permit !== undefined) await ask('PATCH', path, permit);
  else if (rule !== undefined) await ask('DELETE', `${path}/iam/${rule}`);
}

async function callForbidden(attack: Attack): Promise<void> {
  const { random, run } = attack;
  const forbidden: WorldKey = { ...run.world.toggled, spec: { name: 'toggled, forbidden', permits: () => false } };
  const model = random.pick(['shared', 'solo', 'beta/pricey', 'gpt-5.2']);
  await call(attack, '/v1/chat/completions', (mark) => Buffer.from(JSON.stringify(plainChat(random, mark, model))), {
    key: forbidden,
    // One that nobody waits for may be let in when the rule has gone again.
    waits: true,
  });
}
