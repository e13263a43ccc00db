// The hostile inputs of src/http/README.md, "Errors and hostile input", each with the answer stated there: never a 500, and
// nothing is lost.
import { connect } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { bearer, chat, completionOf, errorOf, hello, JSON_TYPE, post } from '../support/chat.ts';
import { addRule, removeRule, startGateway, type TestGateway } from '../support/gateway.ts';
import type { Answer } from '../support/request.ts';
import { send } from '../support/request.ts';
import { callRow, callRows, decisionRows } from '../support/rows.ts';
import { completion, json, startUpstream, type TestUpstream, upstreamEnv } from '../support/upstream.ts';

let upstream: TestUpstream;
let gateway: TestGateway;
let served = 0;

beforeAll(async () => {
  upstream = await startUpstream();
  gateway = await startGateway(upstreamEnv('acme', upstream.origin, 'large', 'large=2/8'));
});

beforeEach(() => upstream.begin(json(completion('Hello'))));

// Whatever came in, the gateway still serves, every call that was opened is settled, and no other row was written.
afterEach(async () => {
  const answer = await chat(gateway, hello());
  const rows = callRows(gateway);
  const expected = served + 1;
  // What one test finds wrong is not held against the next.
  served = rows.length;
  expect(answer.status).toBe(200);
  expect(rows.filter(({ state }) => state === 'open')).toEqual([]);
  expect([rows.length, decisionRows(gateway).length]).toEqual([expected, expected]);
});

afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

const MB = 1024 * 1024;
const from = (address: string) => ({ headers: [['x-forwarded-for', address]] as const });

function expectRefused(answer: Answer, status: number, code: string): void {
  expect([answer.status, errorOf(answer).code, errorOf(answer).type]).toEqual([status, code, 'invalid_request_error']);
}

function expectServed(answer: Answer): void {
  served += 1;
  expect(answer.text.slice(0, 200)).toContain('"chat.completion"');
  expect(answer.status).toBe(200);
  expect(callRow(gateway, answer).state).toBe('settled');
}

describe('a body that is no JSON', () => {
  it.each([
    ['nothing', ''],
    ['blanks', '  \n'],
    ['a word', 'hello'],
    ['half of it', '{"model":"large","messages":[{"role"'],
    ['something after it', `${JSON.stringify(hello())}x`],
    ['a comment', '{/* */"model":"large"}'],
    ['single quotes', "{'model':'large'}"],
    ['NaN', '{"model":"large","temperature":NaN}'],
    ['a control character in a text', '{"model":"a\u0001"}'],
    ['a NUL', '\u0000'],
    ['a byte order mark', `\ufeff${JSON.stringify(hello())}`],
  ])('is 400 invalid_json: %s', async (_, body) => {
    expectRefused(await chat(gateway, body), 400, 'invalid_json');
  });

  it.each([
    ['a lone byte', Buffer.from([0xff])],
    ['Latin-1 in a text', Buffer.from('{"model":"caf\u00e9"}', 'latin1')],
    [
      'an encoded surrogate',
      Buffer.concat([Buffer.from('{"model":"'), Buffer.from([0xed, 0xa0, 0x80]), Buffer.from('"}')]),
    ],
    ['an overlong form', Buffer.from([0x22, 0xc0, 0xaf, 0x22])],
    ['UTF-16', Buffer.from(JSON.stringify(hello()), 'utf16le')],
    ['a truncated character', Buffer.from([0x22, 0xe2, 0x82, 0x22])],
  ])('is 400 invalid_json when it is not UTF-8: %s', async (_, body) => {
    expectRefused(await chat(gateway, body), 400, 'invalid_json');
  });
});

describe('a body of the wrong form', () => {
  it.each([
    ['a list', []],
    ['a number', '7'],
    ['true', 'true'],
    ['a model that is an object', hello({ model: { toString: 1 } })],
    ['messages that are an object', hello({ messages: { length: 1 } })],
    ['a message in a message', hello({ messages: [[{ role: 'user', content: 'x' }]] })],
    ['a number that is none', '{"model":"large","messages":[{"role":"user","content":"x"}],"temperature":1e999}'],
    ['an empty model', hello({ model: '' })],
    ['a model of 513 characters', hello({ model: 'a'.repeat(513) })],
    ['a model with a blank', hello({ model: 'sandbox paid' })],
    ['a model with a line break', hello({ model: 'sandbox-paid\n' })],
    ['a model with a NUL', hello({ model: 'sandbox\u0000' })],
    ['a model with another alphabet', hello({ model: 'sandb\u043ex-paid' })],
    ['a model that would run as a query', hello({ model: "'; DROP TABLE keys; --" })],
    ['a model with half a surrogate pair', '{"model":"a\\ud800","messages":[{"role":"user","content":"x"}]}'],
  ])('is 400 invalid_request: %s', async (_, body) => {
    expectRefused(await chat(gateway, body), 400, 'invalid_request');
  });

  const nested = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`;

  it('is 400 from 65 levels on, and served with 64', async () => {
    const body = (levels: number) =>
      JSON.stringify(hello({ model: 'large' })).replace(/}$/, `,"chat_template_kwargs":${nested(levels - 1)}}`);

    expectServed(await chat(gateway, body(64)));
    expectRefused(await chat(gateway, body(65)), 400, 'invalid_request');
  });

  it.each([
    ['lists', nested(4 * MB)],
    ['objects', `${'{"a":'.repeat(MB)}1${'}'.repeat(MB)}`],
  ])('is 400 however deep it is: a million levels of %s', async (_, body) => {
    expectRefused(await chat(gateway, body), 400, 'invalid_request');
  });

  it('with millions of values is judged without trouble', async () => {
    expectRefused(await chat(gateway, `[${'0,'.repeat(4 * MB)}0]`), 400, 'invalid_request');
  });
});

describe('a well-formed unknown model', () => {
  it.each(['large/', 'acme/../large', 'a:b@c/d', '-', '.', '/', 'toString', '__proto__/x'])(
    'is 404: %s',
    async (model) => {
      expectRefused(await chat(gateway, hello({ model })), 404, 'model_not_found');
    },
  );
});

describe('a body that is too large, encoded, or of another type', () => {
  it('of 20 MB is 413', async () => {
    expectRefused(await chat(gateway, hello({ user: 'x'.repeat(20 * MB) })), 413, 'request_too_large');
  });

  it('of 20 MB without a stated length is 413', async () => {
    const headers = [bearer(gateway.firstRun.gatewayKey), JSON_TYPE, ['transfer-encoding', 'chunked']] as const;

    expectRefused(await post(gateway, hello({ user: 'x'.repeat(20 * MB) }), headers), 413, 'request_too_large');
  });

  it.each(['gzip', 'br', 'deflate', 'x-unknown'])('encoded as %s is 415', async (encoding) => {
    expectRefused(
      await chat(gateway, hello(), { headers: [['content-encoding', encoding]] }),
      415,
      'unsupported_media_type',
    );
  });

  it.each(['text/plain', 'text/json', 'application/xml'])('of type %s is 415', async (type) => {
    const answer = await post(gateway, hello(), [bearer(gateway.firstRun.gatewayKey), ['content-type', type]]);

    expectRefused(answer, 415, 'unsupported_media_type');
  });
});

describe('credentials that are ambiguous', () => {
  const key = () => gateway.firstRun.gatewayKey;
  const cases: readonly [string, () => readonly (readonly [string, string])[], string][] = [
    [
      'two Authorization lines',
      () => [bearer(key()), bearer('other')],
      'The request has more than one authorization header.',
    ],
    [
      'two equal Authorization lines',
      () => [bearer(key()), ['AUTHORIZATION', `Bearer ${key()}`]],
      'The request has more than one authorization header.',
    ],
    [
      'two x-api-key lines',
      () => [
        ['x-api-key', key()],
        ['X-Api-Key', key()],
      ],
      'The request has more than one x-api-key header.',
    ],
    [
      'Authorization and x-api-key that differ',
      () => [bearer(key()), ['x-api-key', 'other']],
      'The request has two different credentials.',
    ],
    [
      'another scheme and x-api-key',
      () => [
        ['authorization', `Basic ${key()}`],
        ['x-api-key', key()],
      ],
      'The request has two different credentials.',
    ],
  ];

  it.each(cases)('are 400: %s', async (_, headers, message) => {
    const answer = await post(gateway, hello(), [JSON_TYPE, ...headers()]);

    expect([answer.status, errorOf(answer)]).toEqual([
      400,
      { message, type: 'invalid_request_error', param: null, code: 'invalid_request' },
    ]);
  });

  it.each(cases)('are 400 of the model list as well: %s', async (_, headers) => {
    expectRefused(await send(gateway.origin, { path: '/v1/models', headers: headers() }), 400, 'invalid_request');
  });

  it('are none when Authorization and x-api-key agree', async () => {
    expectServed(await post(gateway, hello(), [JSON_TYPE, bearer(key()), ['x-api-key', key()]]));
  });
});

describe('strange but well-formed requests', () => {
  it('with 20,000 messages are served', async () => {
    const messages = Array.from({ length: 20_000 }, (_, i) => ({
      role: i % 2 === 0 ? 'user' : 'assistant',
      content: `m${i}`,
    }));

    expectServed(await chat(gateway, hello({ model: 'large', messages })));
    expect(upstream.received[0]?.json).toEqual({ model: 'large', messages });
  });

  it('with lone surrogates are served, re-serialised as escapes', async () => {
    const content = 'a\\ud800b\\udfff\\ud83d\\ude00';

    expectServed(await chat(gateway, `{"model":"large","messages":[{"role":"user","content":"${content}"}]}`));
    expect(upstream.received[0]?.text).toBe(
      '{"model":"large","messages":[{"role":"user","content":"a\\ud800b\\udfff\u{1f600}"}]}',
    );
  });

  it('with lone surrogates are answered by the sandbox too', async () => {
    const answer = await chat(gateway, '{"model":"sandbox-paid","messages":[{"role":"user","content":"a\\ud800"}]}');

    expectServed(answer);
    expect(completionOf(answer).choices[0]?.message.content).toBe('You said: a\ufffd');
  });

  it('with duplicate keys are served by the last of them', async () => {
    const body =
      '{"model":"sandbox-paid","messages":[],"user":"a","messages":[{"role":"user","content":"x","content":"y"}],"user":"b","model":"large"}';

    expectServed(await chat(gateway, body));
    expect(upstream.received[0]?.text).toBe('{"model":"large","messages":[{"role":"user","content":"y"}],"user":"b"}');
  });

  it('with __proto__ and constructor keys in free values forward them as own properties and merge them into nothing', async () => {
    const evil =
      '"__proto__":{"polluted":true,"stream":true},"constructor":{"prototype":{"polluted":true}},"prototype":1,"hasOwnProperty":2,"toString":3,"toJSON":4,"then":5';
    const schema = `{"type":"json_schema","json_schema":{"name":"x","schema":{${evil}}}}`;
    const body = `{"model":"large","messages":[{"role":"user","content":"x"}],"metadata":{"__proto__":"label"},"response_format":${schema}}`;

    expectServed(await chat(gateway, body));
    expect(upstream.received[0]?.text).toBe(body);
    expect([Reflect.get({}, 'polluted'), Reflect.get(Object.prototype, 'polluted')]).toEqual([undefined, undefined]);
  });

  it('whose __proto__ would name a model are judged by their own keys alone', async () => {
    const body = '{"__proto__":{"model":"large","messages":[{"role":"user","content":"x"}]}}';

    const answer = await chat(gateway, body);

    expectRefused(answer, 400, 'invalid_request');
    expect(errorOf(answer).param).toBe('/model');
  });

  it("with a caller's schema that no validator would survive forward it unread", async () => {
    const schema = {
      type: 'object',
      properties: { a: { pattern: '^(a+)+$', $ref: 'http://127.0.0.1:1/x' } },
      $ref: '#',
    };
    const extra = {
      response_format: { type: 'json_schema', json_schema: { name: 'x', schema } },
      tools: [{ type: 'function', function: { name: 'f', parameters: schema } }],
    };

    expectServed(await chat(gateway, hello({ model: 'large', ...extra })));
    expect(upstream.received[0]?.json).toMatchObject(extra);
  });

  it('with URLs of images are forwarded; nothing is fetched', async () => {
    const messages = [
      { role: 'user', content: [{ type: 'image_url', image_url: { url: `${upstream.origin}/secret` } }] },
    ];

    expectServed(await chat(gateway, hello({ model: 'large', messages })));
    expect(upstream.received.map(({ path }) => path)).toEqual(['/v1/chat/completions']);
  });
});

describe('X-Forwarded-For', () => {
  const malformed = [
    '',
    ',',
    ', 192.0.2.7',
    'unknown',
    '192.0.2.256',
    '192.0.2.07',
    '192.0.2.7:443',
    '192.0.2.7/32',
    '[2001:db8::1]',
    'fe80::1%eth0',
    '0x7f.1',
    '2130706433',
    "192.0.2.7' OR 1=1",
    'a'.repeat(8000),
    'x, 192.0.2.7',
  ];

  it.each(malformed)(
    'that is malformed is an unknown address, and served while no IP rule is in force: %j',
    async (value) => {
      const answer = await chat(gateway, hello(), from(value));

      expectServed(answer);
      expect(callRow(gateway, answer).clientAddress).toBeNull();
    },
  );

  it('that is malformed is 403 where an IP rule is in force; a forged, well-formed first entry is taken as it stands', async () => {
    const { id } = addRule(gateway, 'key', {
      ruleType: 'allow_ip_cidrs',
      ruleValue: { ipCidrs: ['192.0.2.0/24', '2001:db8::/32'] },
    });
    const denied = [];
    for (const value of malformed) denied.push(await chat(gateway, hello(), from(value)));
    denied.push(await chat(gateway, hello()));
    denied.push(await chat(gateway, hello(), from('198.51.100.1, 192.0.2.7')));
    const allowed = [];
    for (const value of ['192.0.2.7', ' 192.0.2.7 , junk', '::ffff:192.0.2.7', '2001:DB8:0::1']) {
      allowed.push(await chat(gateway, hello(), from(value)));
    }
    removeRule(gateway, 'key', id);

    served += denied.length;
    for (const answer of denied) expectRefused(answer, 403, 'permission_denied');
    for (const answer of allowed) expectServed(answer);
    expect(allowed.map((answer) => callRow(gateway, answer).clientAddress)).toEqual([
      '192.0.2.7',
      '192.0.2.7',
      '192.0.2.7',
      '2001:db8::1',
    ]);
  });

  it('in several lines is one list', async () => {
    const answer = await chat(gateway, hello(), {
      headers: [
        ['x-forwarded-for', '192.0.2.1'],
        ['x-forwarded-for', '192.0.2.2'],
      ],
    });

    expectServed(answer);
    expect(callRow(gateway, answer).clientAddress).toBe('192.0.2.1');
  });
});

/** Sends bytes as they are, and gives all that comes back until the connection ends. */
function raw(bytes: string): Promise<string> {
  const { port } = new URL(gateway.origin);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), '127.0.0.1', () => socket.write(bytes, 'latin1'));
    const parts: Buffer[] = [];
    socket.on('data', (part: Buffer) => parts.push(part));
    socket.on('error', reject);
    socket.on('close', () => resolve(Buffer.concat(parts).toString('utf8')));
  });
}

describe('what is hardly HTTP', () => {
  const host = () => new URL(gateway.origin).host;
  const BAD = /^HTTP\/1\.1 400 [\s\S]*x-request-id: req_[\s\S]*"code":"invalid_request"}}$/;
  const cases: readonly [string, () => string, RegExp][] = [
    ['noise', () => '\x16\x03\x01\x02\x00\x01\r\n\r\n', BAD],
    [
      'no Host',
      () => 'GET /health HTTP/1.1\r\nConnection: close\r\n\r\n',
      /^HTTP\/1\.1 421 [\s\S]*"misdirected_request"/,
    ],
    [
      'two lengths',
      () => `POST / HTTP/1.1\r\nHost: ${host()}\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx`,
      BAD,
    ],
    [
      'length and chunks',
      () => `POST / HTTP/1.1\r\nHost: ${host()}\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      BAD,
    ],
    [
      'headers without end',
      () => `GET / HTTP/1.1\r\nHost: ${host()}\r\nX: ${'x'.repeat(40_000)}\r\n\r\n`,
      /^HTTP\/1\.1 431 [\s\S]*"code":"request_too_large"}}$/,
    ],
    [
      'a path of another host',
      () => `GET http://evil.example/health HTTP/1.1\r\nHost: ${host()}\r\nConnection: close\r\n\r\n`,
      /^HTTP\/1\.1 (200|404|421) /,
    ],
    [
      'a path with a NUL escape',
      () => `GET /%00 HTTP/1.1\r\nHost: ${host()}\r\nConnection: close\r\n\r\n`,
      /^HTTP\/1\.1 404 /,
    ],
    ['an asterisk', () => `OPTIONS * HTTP/1.1\r\nHost: ${host()}\r\nConnection: close\r\n\r\n`, /^HTTP\/1\.1 404 /],
    [
      'an upgrade',
      () => `GET /health HTTP/1.1\r\nHost: ${host()}\r\nConnection: close, Upgrade\r\nUpgrade: websocket\r\n\r\n`,
      /^HTTP\/1\.1 200 /,
    ],
  ];

  it.each(cases)('is answered or dropped: %s', async (_, bytes, expected) => {
    const answer = await raw(bytes());

    expect(answer).toMatch(expected);
  });

  it('with a body that ends too soon leaves no call behind', async () => {
    const head = `POST /v1/chat/completions HTTP/1.1\r\nHost: ${host()}\r\nAuthorization: Bearer ${gateway.firstRun.gatewayKey}\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{`;
    const { port } = new URL(gateway.origin);
    await new Promise<void>((resolve) => {
      const socket = connect(Number(port), '127.0.0.1', () => socket.write(head, () => socket.destroy()));
      socket.on('close', () => resolve());
    });

    expect(callRows(gateway)).toHaveLength(served);
  });
});
