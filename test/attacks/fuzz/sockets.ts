// Generators on bare connections: what no HTTP client sends, and clients that do not behave.
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../../crash/random.ts';
import type { Attack } from './attack.ts';
import { anyKey, type Generator } from './calls.ts';
import { answerFaults, WELL_FORMED } from './checks.ts';
import type { KeySpec } from './keys.ts';
import { chatBody } from './requests.ts';
import { answersIn } from './wire.ts';

type Lines = readonly string[];

const message = (lines: Lines, body = ''): string => `${lines.join('\r\n')}\r\n\r\n${body}`;

/** A chat's first lines, with a key that may make it. */
const post = (token: string, ...more: Lines): Lines => [
  'POST /v1/chat/completions HTTP/1.1',
  'Host: 127.0.0.1',
  `Authorization: Bearer ${token}`,
  'Content-Type: application/json',
  ...more,
];

const length = (text: string): string => `Content-Length: ${Buffer.byteLength(text)}`;

/** Resolves when the socket takes more, or is closed. */
const drained = (socket: Socket): Promise<void> =>
  new Promise((done) => {
    socket.once('drain', done);
    socket.once('close', done);
  });

/** Sends pieces one after the other. */
async function sendOn(
  attack: Attack,
  socket: Socket,
  pieces: Iterable<string | Buffer>,
  pauseMs?: number,
): Promise<void> {
  for (const piece of pieces) {
    if (socket.destroyed) return;
    attack.record.sent.push(piece);
    const taken = socket.write(piece);
    if (pauseMs !== undefined) await sleep(pauseMs);
    else if (!taken) await drained(socket);
  }
}

/** What comes until the product closes the connection, or nothing has come for a while. */
function received(socket: Socket, quietMs: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  return new Promise((resolve) => {
    const finish = (): void => {
      socket.destroy();
      resolve(Buffer.concat(chunks));
    };
    socket.setTimeout(quietMs, finish);
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    socket.once('close', finish);
    if (socket.destroyed) finish();
  });
}

/** Judges what came back: whole answers, no more of them than were asked for. */
function judge(attack: Attack, bytes: Buffer, most: number, isHead?: (answer: number) => boolean): number {
  try {
    const answers = answersIn(bytes, isHead);
    for (const answer of answers) {
      attack.run.count(answer.status);
      for (const [invariant, detail] of answerFaults({ method: 'POST', path: '' }, answer))
        attack.broken(invariant, detail);
    }
    const secret = attack.run.secrets.foreignIn(bytes.toString('latin1'));
    if (secret !== undefined) attack.broken('no secret is told to others', secret.owner);
    if (answers.length > most) attack.broken(WELL_FORMED, `${answers.length} answers to ${most} requests`);
    return answers.length;
  } catch (error) {
    attack.broken(WELL_FORMED, `${String(error)} in ${bytes.toString('latin1').slice(0, 300)}`);
    return 0;
  }
}

async function converse(
  attack: Attack,
  pieces: Iterable<string | Buffer>,
  most: number,
  quietMs = 12_000,
): Promise<number> {
  const socket = await attack.connect(attack.random.chance(0.9) ? 'gateway' : 'management');
  const reading = received(socket, quietMs);
  await sendOn(attack, socket, pieces);
  return judge(attack, await reading, most);
}

const bodyFor = (attack: Attack): readonly [token: string, body: string] => {
  const key = anyKey(attack);
  return [key.token, JSON.stringify(chatBody(attack.random, attack.mark(key, { isNamed: false })))];
};

function* chunksOf(random: Random, text: string): Generator_ {
  const size = random.pick([1, 1, 3, 100]);
  const extension = random.pick(['', '', ';a=b', `;${'e'.repeat(random.pick([10, 1000]))}`, ';a="b\\""']);
  for (let at = 0; at < text.length; at += size) {
    const piece = text.slice(at, at + size);
    yield `${Buffer.byteLength(piece).toString(16)}${extension}\r\n${piece}\r\n`;
  }
  yield random.pick(['0\r\n\r\n', '0\r\n\r\n', `0\r\nX-Trailer: ${'t'.repeat(1000)}\r\nContent-Length: 5\r\n\r\n`]);
}
type Generator_ = globalThis.Generator<string, void, undefined>;

/** A body in the smallest pieces. */
export const chunkedBodies: Generator = async (attack) => {
  const { random } = attack;
  const [token, body] = bodyFor(attack);
  const text = random.chance(0.2)
    ? body.replace('{', `{"metadata":{"x":"${'x'.repeat(random.pick([50_000, 500_000, 2_000_000]))}"},`)
    : body;
  const head = message(post(token, 'Transfer-Encoding: chunked', 'Connection: close'));
  const chunks = [...chunksOf(random, text)];
  await converse(attack, random.chance(0.5) ? [head, ...chunks] : [head + chunks.join('')], 1);
};

/** Many requests at once, on one connection. */
export const pipelines: Generator = async (attack) => {
  const { random } = attack;
  const count = random.pick([2, 10, 100, 600]);
  const requests = Array.from({ length: count }, (_, at) => {
    const [token, body] = bodyFor(attack);
    const last = at === count - 1 ? ['Connection: close'] : [];
    const get = (path: string): string => message([`GET ${path} HTTP/1.1`, 'Host: 127.0.0.1', ...last]);
    return random.pick([
      () => message(post(token, length(body), ...last), body),
      () => get('/v1/models'),
      () => get(`/v1/models?mapped=true&include_deactivated=${at % 2}`),
      () => get('/health'),
      () => get('/openapi.json'),
    ] as const)();
  });
  await converse(attack, [requests.join('')], count);
};

/** The beginning of a request, and then nothing, or each byte after a while. */
export const partialRequests: Generator = async (attack) => {
  const { random } = attack;
  const [token, body] = bodyFor(attack);
  const whole = random.pick([
    message(post(token, length(body)), body),
    message(post(token, 'Transfer-Encoding: chunked'), `${body.length.toString(16)}\r\n${body}`),
    message(post(token, 'Content-Length: 9000000'), body),
  ]);
  const sent = whole.slice(0, random.between(0, whole.length));
  const socket = await attack.connect();
  const reading = received(socket, 12_000);
  if (random.chance(0.3)) await sendOn(attack, socket, [...sent.slice(0, 150)], 40);
  else await sendOn(attack, socket, [sent]);
  const end = random.between(0, 2);
  if (end === 0) socket.destroy();
  else if (end === 1) socket.end();
  judge(attack, await reading, 1);
};

/** Connections that hold places: silent ones, and those that ask and never read. */
export const hoards: Generator = async (attack) => {
  const { random, run } = attack;
  const sockets = await Promise.all(Array.from({ length: random.pick([10, 40]) }, () => attack.connect()));
  const heldMs = random.between(1000, 6000);
  const kind = random.between(0, 3);
  for (const socket of sockets) {
    const { token } = random.pick(run.world.keys);
    const body = '{"model":"sandbox-slow","messages":[{"role":"user","content":"Take your time."}]}';
    const slow = message(post(token, length(body)), body);
    const half = message(post(token, 'Content-Length: 1000000'), '{');
    const list = message(['GET /openapi.json HTTP/1.1', 'Host: 127.0.0.1']);
    socket.pause();
    if (kind > 0) await sendOn(attack, socket, [[slow, half, list][kind - 1]?.repeat(kind === 2 ? 1 : 30) ?? '']);
  }
  await sleep(heldMs);
  for (const socket of sockets) socket.destroy();
};

/** A client that reads its stream slowly, or leaves in the middle of it. */
export const slowReaders: Generator = async (attack) => {
  const { random, run } = attack;
  const key = random.pick(
    run.world.keys.filter(({ spec }) => spec.mayBeLiedTo === true).concat(run.world.keys[0]) as [
      (typeof run.world.keys)[0],
    ],
  );
  const mark = attack.mark(key, { isNamed: false, fault: random.pick(['endless events', 'slowly', 'a long text']) });
  const body = JSON.stringify({ ...chatBody(random, mark, 'shared'), stream: true });
  const socket = await attack.connect();
  await sendOn(attack, socket, [message(post(key.token, length(body)), body)]);
  for (let time = random.between(1, 20); time > 0 && !socket.destroyed; time -= 1) {
    socket.read(random.between(1, 1000));
    await sleep(100);
  }
  if (random.chance(0.5)) socket.resetAndDestroy();
  else socket.destroy();
};

const NOBODY: KeySpec = { name: 'smuggled', permits: () => false };

/** Requests of two readings: in none of them the one inside may be carried out. */
export const smuggling: Generator = async (attack) => {
  const { random, run } = attack;
  const { token, id } = run.world.keys[0];
  const mark = attack.mark({ spec: NOBODY, token, id }, { isNamed: false });
  const inner = JSON.stringify({ model: 'shared', messages: [{ role: 'user', content: mark }] });
  const hidden = message(post(token, length(inner)), inner);
  const chunked = 'Transfer-Encoding: chunked';
  const bad = { token: 'pcl_none' };
  const whole = random.pick([
    message(post(token, `Content-Length: ${hidden.length + 5}`, chunked), `0\r\n\r\n${hidden}`),
    message(post(token, chunked, `Content-Length: ${hidden.length + 5}`), `0\r\n\r\n${hidden}`),
    message(post(token, length(hidden), 'Transfer-Encoding : chunked'), hidden),
    message(post(token, length(`0\r\n\r\n${hidden}`), 'Transfer-Encoding: xchunked'), `0\r\n\r\n${hidden}`),
    message(post(token, 'Transfer-Encoding: chunked, identity'), `0\r\n\r\n${hidden}`),
    message(post(token, chunked, 'Transfer-Encoding: identity'), `0\r\n\r\n${hidden}`),
    message(post(token, 'Content-Length: 2', length(`{}${hidden}`)), `{}${hidden}`),
    message(post(token, 'Content-Length: 2, 2'), `{}${hidden}`),
    message(post(token, 'Content-Length: +2'), `{}${hidden}`),
    message(post(token, 'Content-Length: 0x2'), `{}${hidden}`),
    message(post(token, 'Content-Length: 18446744073709551618'), `{}${hidden}`),
    message(post(token, 'Transfer-Encoding:\r\n chunked', length(`0\r\n\r\n${hidden}`)), `0\r\n\r\n${hidden}`),
    message(post(token, 'Transfer-Encoding: chunked\u0000', length(`0\r\n\r\n${hidden}`)), `0\r\n\r\n${hidden}`),
    message(post(token, chunked), `0x0\r\n\r\n${hidden}`),
    message(post(token, chunked), `-0\r\n\r\n${hidden}`),
    message(post(token, chunked), `2\n{}\n0\n\n${hidden}`),
    message(post(token, chunked), `2;\n\r\n{}\r\n0\r\n\r\n${hidden}`),
    message(post(token, chunked), `10000000000000002\r\n{}\r\n0\r\n\r\n${hidden}`),
    message(['POST /v1/nothing HTTP/1.1', 'Host: 127.0.0.1', length(hidden)], hidden),
    message(['GET /health HTTP/1.1', 'Host: 127.0.0.1', length(hidden)], hidden),
    message(['HEAD /v1/models HTTP/1.1', 'Host: 127.0.0.1', length(hidden)], hidden),
    message(post(bad.token, length(hidden)), hidden),
    message(post(token, length(hidden), 'Content-Encoding: gzip'), hidden),
    message(post(token, length(hidden), 'Expect: 100-continue'), hidden),
    message(post(token, 'Content-Length: 11000000'), hidden),
    message(['POST /v1/chat/completions HTTP/1.1', 'Host: evil.example', length(hidden)], hidden),
    message(['CONNECT 127.0.0.1:80 HTTP/1.1', 'Host: 127.0.0.1'], hidden),
    message(
      [
        'GET /health HTTP/1.1',
        'Host: 127.0.0.1',
        'Upgrade: h2c',
        'Connection: Upgrade, HTTP2-Settings',
        'HTTP2-Settings: AAMAAABk',
        length(hidden),
      ],
      hidden,
    ),
    message(['GET /health HTTP/1.1', 'Host: 127.0.0.1', 'X: a\nTransfer-Encoding: chunked', length(hidden)], hidden),
    message(['GET /health HTTP/1.1', `Host: 127.0.0.1\rContent-Length: 0`, length(hidden)], hidden),
    `GET /health HTTP/1.1\nHost: 127.0.0.1\n${length(hidden)}\n\n${hidden}`,
    `GET /health HTTP/9.9\r\nHost: 127.0.0.1\r\n${length(hidden)}\r\n\r\n${hidden}`,
    `GET /health\r\n\r\n`,
    'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    Buffer.from('16030100c8010000c40303', 'hex').toString('latin1').repeat(20),
    '\r\n'.repeat(5000),
    `GET /${'a'.repeat(20_000)} HTTP/1.1\r\n\r\n`,
    'GET / HTTP/1.1\r\n'.repeat(1000),
    '\u0000'.repeat(5000),
  ]);
  await converse(attack, random.chance(0.8) ? [whole] : (whole.match(/[\s\S]{1,7}/g) ?? []), 2, 6000);
};

/** HTTP/1.0, and clients that wait to be asked for the body. */
export const oldClients: Generator = async (attack) => {
  const { random } = attack;
  const [token, body] = bodyFor(attack);
  const [first = '', ...rest] = post(token, length(body));
  const old = [first.replace('1.1', '1.0'), ...rest];
  if (random.chance(0.5)) {
    await converse(attack, [message(random.chance(0.5) ? old : [...old, 'Connection: keep-alive'], body)], 1, 11_000);
    return;
  }
  const socket = await attack.connect();
  const reading = received(socket, 11_000);
  await sendOn(attack, socket, [message(post(token, length(body), 'Expect: 100-continue', 'Connection: close'))]);
  await sleep(random.pick([0, 20, 200]));
  await sendOn(attack, socket, [body]);
  judge(attack, await reading, 1);
};
