// Generators of OAuth and of sign-in: applications and browsers that behave, and those that do not.
import { createHash } from 'node:crypto';
import { csrfTokenOf } from '../../../src/admin/sign-in/sessions.ts';
import { record } from '../../../src/providers/wire/fields.ts';
import type { Random } from '../../crash/random.ts';
import type { Answer } from '../../support/request.ts';
import { type Attack, bearer, type Header, JSON_TYPE, type Wanted } from './attack.ts';
import { anyKey, type Generator } from './calls.ts';
import { oddValue } from './json.ts';
import { mcpWithToken } from './mcp.ts';
import { bytesOf } from './requests.ts';
import type { WorldKey } from './world.ts';

const FORM_TYPE: Header = ['content-type', 'application/x-www-form-urlencoded'];
const VERIFIER = 'a-verifier-of-at-least-forty-three-characters';
const CHALLENGE = createHash('sha256').update(VERIFIER).digest('base64url');

/** Where answers of OAuth may lead a browser: others cannot be registered, or nobody registers them. */
const REDIRECTS = ['http://127.0.0.1:33418/callback', 'https://app.example/callback', 'app.example:/callback'] as const;
const REFUSED_REDIRECTS = [
  '//evil.example',
  'javascript:alert(1)',
  'http://127.0.0.1:33418@evil.example/callback',
  'http://evil.example/callback',
  'view-source:https://app.example/callback',
  'intent://app.example/callback',
  'https://app.example;evil.example/callback',
  '\u0000',
] as const;
const FOREIGN_REDIRECTS = [
  ...REFUSED_REDIRECTS,
  'https://evil.example/',
  'https://app.example/callback/../evil',
  'https://app.example.evil.example/callback',
] as const;

interface Client {
  readonly id: string;
  readonly secret: string;
  /** With which it acts by itself. */
  readonly key: WorldKey | undefined;
}

/** Registered ones, the newest; only so many, since a member may let 200 act for them. */
const clients: Client[] = [];
const MOST_CLIENTS = 100;

/** Limits are by address: callers come from many. */
const anyAddress = (random: Random): Pick<Wanted, 'localAddress'> =>
  process.platform === 'linux' ? { localAddress: `127.0.${random.between(1, 250)}.${random.between(1, 250)}` } : {};

type Fields = readonly (readonly [name: string, value: string])[];

/** Now and then a field is missing, twice there, or another one. */
function bent(random: Random, fields: Fields): URLSearchParams {
  const params = new URLSearchParams();
  for (const [name, value] of fields) {
    const odd = random.chance(0.06) ? String(oddValue(random)).slice(0, 3000) : value;
    if (!random.chance(0.05)) params.append(name, odd);
    if (random.chance(0.04)) params.append(name, value);
  }
  if (random.chance(0.05)) {
    params.append(
      random.pick(['claims', 'request', 'request_uri', 'response_mode', 'prompt', 'max_age', '__proto__']),
      'x',
    );
  }
  return params;
}

const textOf = (answer: Answer | undefined, field: string): string => {
  const { [field]: value } = record(answer?.json);
  return typeof value === 'string' ? value : '';
};

/** Sends it from any address. What an answer leads to is a path of the gateway's or an address that was registered. */
async function sendFrom(attack: Attack, wanted: Wanted): Promise<Answer | undefined> {
  const answer = await attack.send({ ...wanted, ...anyAddress(attack.random) });
  const { location = '/' } = answer?.headers ?? {};
  const isOwn = /^\/(?![/\\])/.test(location) || location.startsWith(`${attack.run.world.gateway}/`);
  if (!isOwn && !REDIRECTS.some((uri) => location.startsWith(uri)))
    attack.broken('browsers are led to registered addresses only', location);
  return answer;
}

async function register(attack: Attack): Promise<Client | undefined> {
  const { random } = attack;
  const actsByItself = random.chance(0.5);
  const key = anyKey(attack);
  const metadata = {
    client_name: random.pick(['An application', '<b>x</b>', '\u202e', 'x'.repeat(101)]),
    redirect_uris: [random.pick<string>([...REDIRECTS, ...(random.chance(0.2) ? REFUSED_REDIRECTS : [])])],
    ...(actsByItself
      ? { grant_types: ['client_credentials'], response_types: [], redirect_uris: [] }
      : { token_endpoint_auth_method: random.pick(['none', 'none', 'client_secret_post', 'private_key_jwt']) }),
  };
  const isBound = actsByItself && random.chance(0.9);
  const answer = await sendFrom(attack, {
    method: 'POST',
    path: '/oauth/register',
    headers: [JSON_TYPE, ...(isBound ? [bearer(key)] : [])],
    body: random.chance(0.6) ? Buffer.from(JSON.stringify(metadata)) : bytesOf(random, metadata),
    own: key.token,
  });
  if (answer?.status !== 201) return undefined;
  const client = {
    id: textOf(answer, 'client_id'),
    secret: textOf(answer, 'client_secret'),
    key: isBound ? key : undefined,
  };
  clients.unshift(client);
  clients.length = Math.min(clients.length, MOST_CLIENTS);
  return client;
}

/** One that is registered, or is made now, or that nobody knows. */
async function anyClient(attack: Attack, suits: (client: Client) => boolean): Promise<Client> {
  const [first, ...rest] = clients.filter(suits);
  if (first !== undefined && clients.length >= MOST_CLIENTS / 2) return attack.random.pick([first, ...rest]);
  return (await register(attack)) ?? first ?? { id: 'nobody', secret: 'none', key: undefined };
}

const post = (attack: Attack, path: string, fields: Fields, headers: readonly Header[] = []) =>
  sendFrom(attack, {
    method: 'POST',
    path,
    headers: [FORM_TYPE, ...headers],
    body: Buffer.from(String(bent(attack.random, fields))),
  });

/** A client acts by itself: it can do what its key can do. */
async function actAlone(attack: Attack): Promise<void> {
  const { random, run } = attack;
  const client = await anyClient(attack, ({ key }) => key !== undefined);
  const isBasic = random.chance(0.5);
  const answer = await post(
    attack,
    '/oauth/token',
    [
      ['grant_type', 'client_credentials'],
      ['resource', `${run.world.gateway}/mcp`],
      ...(isBasic
        ? []
        : ([
            ['client_id', client.id],
            ['client_secret', client.secret],
          ] as const)),
    ],
    isBasic ? [['authorization', `Basic ${Buffer.from(`${client.id}:${client.secret}`).toString('base64')}`]] : [],
  );
  const token = textOf(answer, 'access_token');
  if (token === '') return;
  if (client.key === undefined) attack.broken('a client without a key gets no token', client.id);
  else await mcpWithToken(attack, client.key, token);
  if (random.chance(0.2)) await revoke(attack, client, token);
}

const revoke = (attack: Attack, { id, secret }: Client, token: string) =>
  post(attack, '/oauth/revoke', [
    ['token', token],
    ['client_id', id],
    ['client_secret', secret],
  ]);

const cookiesOf = (answer: Answer | undefined): string[] =>
  (answer?.headers['set-cookie'] ?? []).map((cookie) => cookie.split(';')[0] ?? '');

/** The whole way of a member who lets an application act for them, with steps left out and things changed. */
async function connect(attack: Attack): Promise<void> {
  const { random, run } = attack;
  const client = await anyClient(attack, ({ key }) => key === undefined);
  const params = bent(random, [
    ['response_type', 'code'],
    ['client_id', client.id],
    ['redirect_uri', random.pick<string>([...REDIRECTS, ...(random.chance(0.3) ? FOREIGN_REDIRECTS : [])])],
    ['code_challenge', CHALLENGE],
    ['code_challenge_method', random.chance(0.95) ? 'S256' : 'plain'],
    ['state', 'x'.repeat(random.pick([1, 20, 1000]))],
    ['resource', `${run.world.gateway}/mcp${random.chance(0.1) ? '/' : ''}`],
  ]);
  const asked = await sendFrom(attack, { path: `/oauth/authorize?${params}` });
  const page = asked?.headers.location ?? '';
  if (!page.startsWith('/oauth/interaction/consent/')) return;
  const secret = run.world.signIn();
  const cookie: Header = ['cookie', [`portcullis_session=${secret}`, ...cookiesOf(asked)].join('; ')];
  if (random.chance(0.5)) await sendFrom(attack, { path: page, headers: [cookie], own: secret });
  const answered = await post(
    attack,
    page,
    [
      ['csrf', csrfTokenOf(secret)],
      ['key', random.chance(0.9) ? 'new' : run.world.attacker.key.id],
      ['project', run.world.attacker.tenant.project.id],
      ['limit', random.pick(['', '1', '-1', '1e3', 'x'])],
      ['window', random.pick(['month', 'all', 'day', 'century'])],
      ['days', random.pick(['30', '90', '', '1e9'])],
      ['answer', random.chance(0.9) ? 'allow' : 'refuse'],
    ],
    [cookie],
  );
  const resume = URL.parse(answered?.headers.location ?? '');
  if (resume === null) return;
  const back = await sendFrom(attack, {
    path: resume.pathname,
    headers: [['cookie', [...cookiesOf(asked), ...cookiesOf(answered)].join('; ')]],
  });
  const code = URL.parse(back?.headers.location ?? '')?.searchParams.get('code');
  if (typeof code === 'string') await trade(attack, client, code, params.get('redirect_uri') ?? '');
}

/** A code for tokens, those for others; now and then one for the second time. */
async function trade(attack: Attack, client: Client, code: string, redirectUri: string): Promise<void> {
  const { random, run } = attack;
  const own: Fields = [
    ['client_id', client.id],
    ...(client.secret === '' ? [] : ([['client_secret', client.secret]] as const)),
  ];
  const fields: Fields = [
    ['grant_type', 'authorization_code'],
    ['code', code],
    ['redirect_uri', redirectUri],
    ['code_verifier', random.chance(0.95) ? VERIFIER : 'no-verifier-at-all-of-forty-three-characters'],
    ...own,
  ];
  const answer = await post(attack, '/oauth/token', fields);
  const tokens = [textOf(answer, 'access_token'), textOf(answer, 'refresh_token')] as const;
  if (random.chance(0.2)) await post(attack, '/oauth/token', fields);
  if (tokens[0] !== '') await mcpWithToken(attack, run.world.attacker.key, tokens[0]);
  if (tokens[1] === '') return;
  for (let times = random.pick([0, 1, 1, 2]); times > 0; times -= 1)
    await post(attack, '/oauth/token', [['grant_type', 'refresh_token'], ['refresh_token', tokens[1]], ...own]);
  if (random.chance(0.3)) await revoke(attack, client, tokens[1]);
}

const DOCUMENTS = [
  '/.well-known/oauth-protected-resource/mcp',
  '/.well-known/oauth-protected-resource',
  '/.well-known/oauth-authorization-server',
  '/.well-known/openid-configuration',
  '/oauth/keys',
  '/oauth/register',
  '/oauth/token',
  '/oauth/authorize/x',
  '/oauth/userinfo',
  '/oauth/introspect',
] as const;

async function discover(attack: Attack): Promise<void> {
  const { random } = attack;
  await sendFrom(attack, {
    method: random.pick(['GET', 'GET', 'OPTIONS', 'HEAD', 'POST', 'PUT']),
    path: random.pick(DOCUMENTS),
    headers: [
      ...(random.chance(0.3) ? [['host', random.pick(['evil.example', 'localhost', '[::1]', ''])] as const] : []),
      ...(random.chance(0.3) ? [['origin', random.pick(['https://evil.example', 'null'])] as const] : []),
      ...(random.chance(0.3) ? [['access-control-request-method', 'POST'] as const] : []),
      ...(random.chance(0.3) ? [['x-forwarded-host', 'evil.example'] as const] : []),
    ],
  });
}

export const oauth: Generator = (attack) =>
  attack.random
    .pick([actAlone, actAlone, connect, connect, connect, register, discover])(attack)
    .then(() => undefined);

const PAGES = [
  'sign-in',
  'sign-in/organization',
  'account',
  'account/password',
  'account/sessions/end',
  'account/passkeys/options',
  'account/passkeys',
  'account/passkeys/remove',
  'sign-in/passkey/options',
  'sign-in/passkey',
  'link',
  'invitation',
  'applications',
  'applications/end',
  'consent/x',
  'assets/style.css',
  'none',
] as const;

/** Pages and forms of sign-in, with a session and without. */
export const signIn: Generator = async (attack) => {
  const { random, run } = attack;
  const secret = random.chance(0.5) ? run.world.signIn() : undefined;
  const cookie = secret === undefined ? `portcullis_form=${'A'.repeat(43)}` : `portcullis_session=${secret}`;
  const csrf = csrfTokenOf(secret ?? 'A'.repeat(43));
  const headers: Header[] = [
    ['cookie', random.chance(0.9) ? cookie : `${cookie}; portcullis_session=%00`],
    ...(random.chance(0.3) ? [['x-csrf-token', csrf] as const] : []),
    ...(random.chance(0.1) ? [['origin', random.pick(['https://evil.example', run.world.gateway])] as const] : []),
  ];
  const path = `/oauth/interaction/${random.pick(PAGES)}`;
  const next = random.pick([
    '/',
    '//evil.example',
    '/\\evil.example',
    'https://evil.example',
    '/oauth/interaction/account',
  ]);
  if (random.chance(0.4)) {
    await sendFrom(attack, {
      path: `${path}?${new URLSearchParams({ next, token: 'x'.repeat(random.pick([0, 43, 3000])) })}`,
      headers,
      ...(secret === undefined ? {} : { own: secret }),
    });
  } else if (random.chance(0.3)) {
    const body = {
      id: 'x',
      rawId: 'x',
      response: { clientDataJSON: 'e30', attestationObject: 'x' },
      type: 'public-key',
    };
    await sendFrom(attack, {
      method: 'POST',
      path,
      headers: [JSON_TYPE, ['x-csrf-token', csrf], ...headers.slice(0, 1)],
      body: bytesOf(random, body),
    });
  } else {
    await post(
      attack,
      path,
      [
        ['csrf', csrf],
        ['email', random.pick(['owner@attacker.example', 'owner@attacked.example', 'nobody@x.example', '\u0000'])],
        ['password', random.pick(['wrong', 'x'.repeat(1025), ''])],
        ['next', next],
        ['token', 'A'.repeat(43)],
        ['name', '<b>'],
        ['session', 'x'],
        ['application', clients[0]?.id ?? 'x'],
      ],
      headers,
    );
  }
};
