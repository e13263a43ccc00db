// Requests of a few kilobytes that cost much more than others: each is bounded before it is parsed.
import { setTimeout as sleep } from 'node:timers/promises';
import { fetch } from 'undici';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bearer, chat, errorOf, hello, JSON_TYPE } from '../support/chat.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { head, openRaw, raw } from '../support/raw.ts';
import { type Answer, send } from '../support/request.ts';

let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startGateway();
});

afterAll(() => gateway.close());

const KB = 1024;
const MB = 1024 * KB;

/** Both listeners, and a route of each that reads its query. */
const listeners = (): [origin: string, path: string, token: string][] => [
  [gateway.origin, '/v1/models', gateway.firstRun.gatewayKey],
  [gateway.management, '/v1/master/keys', gateway.firstRun.masterKey],
];

const refusal = (answer: Answer) => [answer.status, errorOf(answer)];

const invalid = (message: string, code = 'invalid_request') => ({
  message,
  type: 'invalid_request_error',
  param: null,
  code,
});

describe('JSON that takes little space and much time', () => {
  const withUser = (json: string): string => `${JSON.stringify(hello()).slice(0, -1)},"user":${json}}`;
  const fields = (count: number): string => `{${Array.from({ length: count }, (_, i) => `"k${i}":0`).join()}}`;
  const nested = (levels: number): string => `${'['.repeat(levels)}${']'.repeat(levels)}`;

  it.each([
    ['more than 200,000 values', () => `[${'0,'.repeat(200_000)}0]`, 'The request body holds more than 200000 values.'],
    [
      'more than 200,000 empty objects',
      () => `[${'{},'.repeat(3 * MB)}{}]`,
      'The request body holds more than 200000 values.',
    ],
    [
      'an object of more than 10,000 fields',
      () => fields(10_001),
      'An object in the request body has more than 10000 fields.',
    ],
    ['more than 64 levels', () => nested(64), 'The request body is nested deeper than 64 levels.'],
  ])('is refused before it is parsed, and says why: %s', async (_, json, message) => {
    const body = withUser(json());
    const management = { method: 'POST', path: '/v1/master/keys', body };
    const headers = [bearer(gateway.firstRun.masterKey), JSON_TYPE];

    const answers = [await chat(gateway, body), await send(gateway.management, { ...management, headers })];

    expect(answers.map(refusal)).toEqual(Array(2).fill([400, invalid(message)]));
  });

  it('is judged as ever at the bounds', async () => {
    // The body's own object, its two other fields, and the message take seven values.
    const bodies = [withUser(`[${'0,'.repeat(199_990)}0]`), withUser(fields(10_000)), withUser(nested(63))];

    const codes = [];
    for (const body of bodies) codes.push(errorOf(await chat(gateway, body)).param);

    expect(codes).toEqual(['/user', '/user', '/user']);
  });

  it('is bounded as the operator says', async () => {
    const other = await startGateway({ MAX_JSON_VALUES: '10', MAX_JSON_FIELDS: '4' });
    const bodies = [hello(), hello({ stop: ['a', 'b', 'c', 'd', 'e'] }), hello({ n: 1, user: 'a', stop: 'b' })];

    const answers = [];
    for (const body of bodies) answers.push(await chat(other, body));
    await other.close();

    expect(answers.map(({ status }) => status)).toEqual([200, 400, 400]);
    expect(answers.slice(1).map((answer) => errorOf(answer).message)).toEqual([
      'The request body holds more than 10 values.',
      'An object in the request body has more than 4 fields.',
    ]);
  });
});

describe('a query of many parameters', () => {
  it('is refused from the 65th on, and read up to the 64th', async () => {
    for (const [origin, path, token] of listeners()) {
      const ask = (query: string) => send(origin, { path: `${path}?${query}`, headers: [bearer(token)] });

      const [many, tooMany] = [await ask('a=1&'.repeat(63)), await ask('a=1&'.repeat(64))];

      // The master API knows no parameter of that name.
      expect([origin === gateway.origin ? 200 : 400, many.text.includes('64 parameters')]).toEqual([
        many.status,
        false,
      ]);
      expect(refusal(tooMany)).toEqual([400, invalid('The query of the request has more than 64 parameters.')]);
    }
  });

  it('is refused when it is longer than 8 kB, whatever the route', async () => {
    for (const [origin, path] of [...listeners(), [gateway.origin, '/nothing'], [gateway.management, '/health']]) {
      const answer = await send(String(origin), { path: `${path}?${'a'.repeat(8 * KB + 1)}` });

      expect(refusal(answer)).toEqual([
        431,
        invalid('The query of the request is longer than 8192 bytes.', 'request_too_large'),
      ]);
    }
  });

  it('costs no more than one of a few', async () => {
    const elapsed = async (query: string): Promise<number> => {
      const startedAt = performance.now();
      for (let i = 0; i < 20; i += 1) await send(gateway.origin, { path: `/v1/models/sandbox-paid?${query}` });
      return performance.now() - startedAt;
    };
    const few = await elapsed('a&a');

    // It took 2 seconds each.
    expect(await elapsed('a&'.repeat(7 * KB))).toBeLessThan(10 * few + 1000);
  });
});

describe('headers of 16 kB', () => {
  const HOSTILE = [
    '\t',
    ' ',
    ',',
    ', ',
    'a,',
    '1.',
    '1',
    ':',
    ':1',
    '/',
    '=',
    ';',
    '"',
    'bearer ',
    '%',
    '::1,',
    '10.0.0.1,',
  ];
  const NAMES = [
    'X-Forwarded-For',
    'Forwarded',
    'Authorization',
    'X-Api-Key',
    'Host',
    'Content-Type',
    'Content-Encoding',
    'Accept',
    'Connection',
    'If-None-Match',
    'Cache-Control',
    'X-Request-Id',
    'X-No-Cache',
    'Cookie',
  ];
  const SIZE = 15 * KB;

  /** Characters around the piece keep Node from taking blanks away at either end. */
  const hostile = (piece: string): string[] => {
    const text = piece.repeat(Math.floor(SIZE / piece.length));
    return [`x${text}x`, `Bearer ${text}x`, `127.0.0.1${text}x`, `application/json${text}x`];
  };

  it.each(NAMES)('cost no more than others, whatever stands in %s', async (name) => {
    const elapsed = async (lines: readonly string[]): Promise<number> => {
      const startedAt = performance.now();
      for (const line of lines) {
        const host = line.startsWith('Host') ? [] : ['Host: localhost'];
        const request = ['POST /v1/chat/completions HTTP/1.1', ...host, line, 'Connection: close', 'Content-Length: 0'];
        await raw(gateway.origin, `${request.join('\r\n')}\r\n\r\n`);
      }
      return performance.now() - startedAt;
    };
    const lines = HOSTILE.flatMap(hostile).map((value) => `${name}: ${value}`);
    const harmless = await elapsed(lines.map(() => `X-Other: ${'x'.repeat(SIZE)}`));

    expect(await elapsed(lines)).toBeLessThan(10 * harmless + 200);
  });

  it('and more are refused', async () => {
    for (const [origin] of listeners()) {
      const answer = await raw(origin, head('GET /health', `X-Other: ${'x'.repeat(17 * KB)}`));

      expect(answer).toMatch(/^HTTP\/1\.1 431 [\s\S]*"code":"request_too_large"}}$/);
    }
  });
});

describe('a path of 15 kB', () => {
  it.each(['/', '%2f', '%20', 'a/', '..%2f', ':', '*', '{', '//', '/v1/models'])(
    'costs no more than a short one: %s',
    async (piece) => {
      const elapsed = async (path: string): Promise<number> => {
        const startedAt = performance.now();
        for (let i = 0; i < 10; i += 1) await send(gateway.origin, { path });
        return performance.now() - startedAt;
      };
      const short = await elapsed('/v1/models/nothing');

      const long = piece.repeat(Math.floor((15 * KB) / piece.length));
      expect(await elapsed(`/v1/models/${long}`)).toBeLessThan(10 * short + 500);
      expect(await elapsed(`/${long}`)).toBeLessThan(10 * short + 500);
    },
  );
});

describe('a body in many pieces', () => {
  const authorized = () => `Authorization: Bearer ${gateway.firstRun.gatewayKey}`;
  const chunked = () =>
    head(
      'POST /v1/chat/completions',
      authorized(),
      'Content-Type: application/json',
      'Transfer-Encoding: chunked',
      'Connection: close',
    );
  const inBytes = (text: string): string => [...text].map((character) => `1\r\n${character}\r\n`).join('');

  it('is served when they are single bytes of a small one', async () => {
    const body = JSON.stringify(hello({ user: 'x'.repeat(9000) }));

    const answer = await raw(gateway.origin, `${chunked()}${inBytes(body)}0\r\n\r\n`);

    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
  });

  it('is served when a large one comes in pieces of 512 bytes', async () => {
    const body = JSON.stringify(hello({ user: 'x'.repeat(9 * MB) }));
    const pieces = body.match(/.{1,512}/gs) ?? [];

    const answer = await raw(
      gateway.origin,
      `${chunked()}${pieces.map((piece) => `${piece.length.toString(16)}\r\n${piece}\r\n`).join('')}0\r\n\r\n`,
    );

    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
  });

  it('is refused when they are more than 10,000 and one for each kilobyte', async () => {
    const answer = await raw(gateway.origin, `${chunked()}${inBytes('x'.repeat(10_020))}0\r\n\r\n`);

    expect(answer).toMatch(/^HTTP\/1\.1 413 [\s\S]*"The request body comes in too many small pieces."/);
  });
});

describe('a caller who is refused', () => {
  const head20MB = (...headers: string[]): string =>
    head('POST /v1/chat/completions', 'Content-Type: application/json', `Content-Length: ${20 * MB}`, ...headers);

  it.each([
    ['without a key', () => head20MB(), 401],
    ['with a body that is too large', () => head20MB(`Authorization: Bearer ${gateway.firstRun.gatewayKey}`), 413],
    ['at a path that is not there', () => head(`POST /nothing`, `Content-Length: ${20 * MB}`), 404],
    ['by the host', () => head20MB().replace('Host: localhost', 'Host: evil.example'), 421],
    ['by the size of the query', () => head20MB().replace('completions', `completions?${'a'.repeat(9000)}`), 431],
  ])(
    '%s gets an answer that announces the end of the connection, and the connection ends, though the body never comes',
    async (_, request, status) => {
      const { ended, said } = await openRaw(gateway.origin, request());

      expect(await said(/}}$/)).toMatch(new RegExp(`^HTTP/1\\.1 ${status} [\\s\\S]*\\r\\nconnection: close\\r\\n`));
      await ended;
    },
  );

  it('cannot make the gateway read a body', async () => {
    const { socket, ended } = await openRaw(gateway.origin, head20MB().replace(String(20 * MB), String(1000 * MB)));
    const piece = Buffer.alloc(64 * KB, 'x');
    let isOver = false;
    void ended.then(() => {
      isOver = true;
    });
    while (!isOver) {
      if (!socket.writableNeedDrain) socket.write(piece);
      await sleep(0);
    }

    // What the systems of both ends hold comes on top of what is read and dropped.
    expect(socket.bytesWritten - socket.writableLength).toBeLessThan(20 * MB);
  });

  it('does not send the body at all where the client asks before', async () => {
    const { said, ended } = await openRaw(gateway.origin, head20MB('Expect: 100-continue'));

    expect(await said(/}}$/)).toMatch(/^HTTP\/1\.1 401 /);
    await ended;
  });

  it('can read the answer while it is still sending, with node:http and with undici', async () => {
    const body = 'x'.repeat(20 * MB);
    const headers = { 'content-type': 'application/json', authorization: 'Bearer nonsense' };
    const url = `${gateway.origin}/v1/chat/completions`;

    const statuses = [];
    for (let i = 0; i < 5; i += 1) {
      statuses.push((await send(gateway.origin, { method: 'POST', path: '/v1/chat/completions', body })).status);
      const answer = await fetch(url, { method: 'POST', headers, body });
      statuses.push([answer.status, JSON.parse(await answer.text()).error.code]);
    }

    expect(statuses).toEqual(
      Array(5)
        .fill([401, [401, 'invalid_api_key']])
        .flat(),
    );
  });

  it('keeps the connection when the body has come', async () => {
    const request = head('POST /v1/chat/completions', 'Content-Type: application/json', 'Content-Length: 2');
    const { socket, said } = await openRaw(gateway.origin, `${request}{}`);
    await said(/}}$/);
    socket.write(head('GET /health'));

    expect(await said(/"ok"}$/)).not.toContain('connection: close');
    socket.destroy();
  });

  it('gets the body after the client got 100 Continue', async () => {
    const body = JSON.stringify(hello());
    const { said, socket } = await openRaw(
      gateway.origin,
      head(
        'POST /v1/chat/completions',
        `Authorization: Bearer ${gateway.firstRun.gatewayKey}`,
        'Content-Type: application/json',
        `Content-Length: ${body.length}`,
        'Expect: 100-continue',
      ),
    );
    await said(/^HTTP\/1\.1 100 Continue\r\n\r\n$/);
    socket.write(body);

    expect(await said(/"routing"/)).toContain('HTTP/1.1 200 OK');
    socket.destroy();
  });
});
