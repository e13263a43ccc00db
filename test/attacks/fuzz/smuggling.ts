// A generator of requests that two servers may read in two ways: what is hidden in them may never be carried out.
import type { Generator } from './calls.ts';
import { converse, length, message, post } from './connections.ts';
import type { KeySpec } from './keys.ts';

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
