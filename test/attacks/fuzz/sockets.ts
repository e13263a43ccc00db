// Generators on bare connections: what no HTTP client sends, and clients that do not behave.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../../crash/random.ts';
import type { Generator } from './calls.ts';
import { bodyFor, converse, judge, length, message, post, received, sendOn } from './connections.ts';
import { chatBody } from './requests.ts';

/** More chunks than these have no long extensions and are sent together, or the fuzzer would be busy for too long. */
const MANY_CHUNKS = 10_000;

function* chunksOf(random: Random, text: string): Generator_ {
  const size = random.pick([1, 1, 3, 100]);
  const long = text.length / size > MANY_CHUNKS ? 1 : 1000;
  const extension = random.pick(['', '', ';a=b', `;${'e'.repeat(random.pick([10, long]))}`, ';a="b\\""']);
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
    ? body.replace('{', `{"metadata":{"x":"${'x'.repeat(random.pick([10_000, 50_000]))}"},`)
    : body;
  const head = message(post(token, 'Transfer-Encoding: chunked', 'Connection: close'));
  const chunks = [...chunksOf(random, text)];
  const isApart = random.chance(0.5) && chunks.length <= MANY_CHUNKS;
  await converse(attack, isApart ? [head, ...chunks] : [head + chunks.join('')], 1);
};

/** A long body of single bytes: each of them costs the parser as much as a request's line. */
export const bodiesInBytes: Generator = async (attack) => {
  const { random } = attack;
  const [token, body] = bodyFor(attack);
  const text = body.replace('{', `{"metadata":{"x":"${'x'.repeat(random.pick([100_000, 200_000, 1_000_000]))}"},`);
  const head = message(post(token, 'Transfer-Encoding: chunked', 'Connection: close'));
  const bytes = Array.from(Buffer.from(text).toString('latin1'), (byte) => `1\r\n${byte}\r\n`);
  await converse(attack, [Buffer.from(`${head}${bytes.join('')}0\r\n\r\n`, 'latin1')], 1);
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
    if (kind > 0) await sendOn(attack, socket, [[slow, half, list][kind - 1]?.repeat(kind === 2 ? 1 : 10) ?? '']);
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
