// One call explains itself: how long it took and where, and why an attempt failed, for those who run the gateway.
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer as createTlsServer } from 'node:https';
import { createServer as createTcpServer, type Server } from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { runIn } from '../../cli/command-line.ts';
import { bearer, chat, hello, JSON_TYPE, post } from '../../support/chat.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import { type Answer, send } from '../../support/request.ts';
import { TLS } from '../../support/tls-gateway.ts';
import {
  chunk,
  completion,
  events,
  failure,
  hangUp,
  json,
  type Reply,
  startUpstream,
  type TestUpstream,
  USAGE_CHUNK,
  upstreamEnv,
  writeEvents,
} from '../../support/upstream.ts';

interface Shown {
  readonly id: string;
  readonly timing: Readonly<Record<string, number | null>> | null;
  readonly attempts: readonly Readonly<Record<string, unknown>>[] | null;
}

const master = async (gateway: TestGateway, route: string) =>
  (await send(gateway.management, { path: `/v1/master/${route}`, headers: [bearer(gateway.firstRun.masterKey)] })).json;

/** The call of an answer, as the master API shows it. */
async function shown(gateway: TestGateway, { headers }: Answer): Promise<Shown> {
  const list = await master(gateway, `calls?requestId=${String(headers['x-request-id'])}`);
  const [call] = JSON.parse(JSON.stringify(list)).calls;
  return JSON.parse(JSON.stringify(await master(gateway, `calls/${call.id}`))).call;
}

const delayed =
  (ms: number, reply: Reply): Reply =>
  async (response, received) => {
    await sleep(ms);
    await reply(response, received);
  };

describe('how long a call took', () => {
  let slow: TestUpstream;
  let gateway: TestGateway;

  beforeAll(async () => {
    slow = await startUpstream();
    gateway = await startGateway({
      ...upstreamEnv('acme', slow.origin, 'large', 'large=2/8'),
      ...upstreamEnv('gone', 'http://127.0.0.1:1', 'large', 'large=1/4'),
    });
  });
  beforeEach(() => slow.begin(json(completion('Hello'))));
  afterAll(async () => {
    await gateway.close();
    await slow.close();
  });

  it('stands in parts that add up, with each attempt', async () => {
    slow.begin(delayed(300, json(completion('Hello'))));

    const call = await shown(gateway, await chat(gateway, hello({ model: 'large' })));

    const { tookMs, receivingMs, providersMs, gatewayMs, firstTokenMs } = call.timing ?? {};
    expect([Number(tookMs), firstTokenMs]).toEqual([
      Number(receivingMs) + Number(providersMs) + Number(gatewayMs),
      null,
    ]);
    expect(Number(providersMs)).toBeGreaterThanOrEqual(299);
    expect(Number(gatewayMs)).toBeLessThan(200);
    expect(call.attempts).toMatchObject([
      {
        provider: 'gone',
        succeeded: false,
        cause: 'connection_refused',
        explanation: 'Nothing listens at the address of the provider.',
        startedMs: expect.any(Number),
        durationMs: expect.any(Number),
      },
      { provider: 'acme', succeeded: true, startedMs: expect.any(Number), durationMs: expect.any(Number) },
    ]);
    expect(Number(call.attempts?.[1]?.durationMs)).toBeGreaterThanOrEqual(299);
    expect(call.attempts?.[1]).not.toHaveProperty('cause');
  });

  it('of a stream goes to its end, and says when it began to say something', async () => {
    slow.begin(async (response) => {
      writeEvents(response, chunk({ role: 'assistant', content: '' }));
      await sleep(200);
      writeEvents(response, chunk({ content: 'Hel' }));
      await sleep(300);
      writeEvents(response, chunk({ content: 'lo' }, 'stop'), USAGE_CHUNK, '[DONE]');
      response.end();
    });

    const { timing, attempts } = await shown(
      gateway,
      await chat(gateway, hello({ model: 'acme/large', stream: true })),
    );

    expect(Number(timing?.firstTokenMs)).toBeGreaterThanOrEqual(199);
    expect(Number(timing?.firstTokenMs)).toBeLessThan(480);
    expect(Number(attempts?.[0]?.durationMs)).toBeGreaterThanOrEqual(499);
  });

  it('tells the time that the caller needs to send its request from that of the gateway', async () => {
    const body = JSON.stringify(hello({ model: 'acme/large' }));
    const answer = await sentSlowly(gateway, body, 300);

    const { timing } = await shown(gateway, answer);

    expect(Number(timing?.receivingMs)).toBeGreaterThanOrEqual(250);
    expect(Number(timing?.gatewayMs)).toBeLessThan(200);
  });

  it('is what calls are searched by, over HTTP and on the command line', async () => {
    const fast = await shown(gateway, await chat(gateway, hello({ model: 'acme/large' })));
    slow.begin(delayed(1200, json(completion('Hello'))));
    const slower = await shown(gateway, await chat(gateway, hello({ model: 'acme/large' })));

    const ids = (list: unknown): string[] => JSON.parse(JSON.stringify(list)).calls.map((each: Shown) => each.id);
    expect(ids(await master(gateway, 'calls?slowerThan=1000'))).toEqual([slower.id]);
    expect(ids(await master(gateway, 'calls?slowerThan=999999999'))).toEqual([]);
    expect(ids(await master(gateway, 'calls?slowerThan=0'))).toEqual(expect.arrayContaining([slower.id, fast.id]));
    expect(await master(gateway, 'calls?slowerThan=2s')).toMatchObject({
      error: { param: '/slowerThan', message: expect.stringContaining('whole number of milliseconds') },
    });
    const cli = (...args: string[]) => runIn(gateway.dataDir, {}, 'calls', ...args);
    const listed = await cli('list', '--slower-than', '1s', '--json');
    expect(ids(JSON.parse(listed.stdout))).toEqual([slower.id]);
    expect((await cli('list', '--slower-than', 'two')).code).toBe(2);
    expect((await cli('show', slower.id)).stdout).toMatch(
      /^took +1,[2-9]\d\d ms: (?:\d+ waiting for the request, )?1,[2-9]\d\d acme, \d+ gateway$/m,
    );
  });
});

/** Posts a body in two parts. */
async function sentSlowly(gateway: TestGateway, body: string, pauseMs: number): Promise<Answer> {
  const response = await fetch(`${gateway.origin}/v1/chat/completions`, {
    method: 'POST',
    headers: { ...Object.fromEntries([bearer(gateway.firstRun.gatewayKey), JSON_TYPE]) },
    body: new ReadableStream({
      async start(controller) {
        controller.enqueue(Buffer.from(body.slice(0, 10)));
        await sleep(pauseMs);
        controller.enqueue(Buffer.from(body.slice(10)));
        controller.close();
      },
    }),
    duplex: 'half',
  });
  const text = await response.text();
  return { status: response.status, headers: Object.fromEntries(response.headers), text, json: JSON.parse(text) };
}

const expired = readFileSync(path.join(import.meta.dirname, '../../fixtures/tls/expired.pem'), 'utf8');

const listening = async (server: Server): Promise<number> => {
  server.listen(0, 'localhost');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
};

describe('why an attempt failed', () => {
  let upstream: TestUpstream;
  let gateway: TestGateway | undefined;
  const servers: Server[] = [];
  const authorities = getCACertificates('default');

  beforeAll(async () => {
    upstream = await startUpstream();
  });
  afterEach(async () => {
    await gateway?.close();
    gateway = undefined;
    for (const server of servers.splice(0)) server.close();
    setDefaultCACertificates(authorities);
  });
  afterAll(() => upstream.close());

  const tls = async (cert: string): Promise<number> => {
    const server = createTlsServer({ key: TLS.key, cert }, (_, response) => response.end('{}'));
    servers.push(server);
    return listening(server);
  };

  /** The cause of the only attempt at this address; the caller learns neither it nor the address. */
  async function causeAt(origin: string, env: Record<string, string> = {}): Promise<unknown> {
    gateway = await startGateway({ ...upstreamEnv('acme', origin, 'large', 'large=2/8'), ...env });
    const answer = await chat(gateway, hello({ model: 'large' }));
    const { attempts } = await shown(gateway, answer);
    const [attempt] = attempts ?? [];
    expect(attempts).toHaveLength(1);
    expect(attempt?.explanation).toMatch(/^[A-Z].*\.$/);
    expect(answer.text).not.toContain('"cause"');
    expect(JSON.stringify([answer.text, attempts])).not.toContain(new URL(origin).host);
    expect(JSON.stringify([answer.text, attempts])).not.toContain('ECONN');
    return attempt?.cause;
  }

  it.each<[what: string, cause: string, reply: Reply]>([
    ['that hangs up', 'connection_reset', hangUp],
    [
      'that answers its paths with a page',
      'wrong_path',
      (response) => void response.writeHead(404).end('<html>404</html>'),
    ],
    ['that has no such path', 'wrong_path', json({ detail: 'Not Found' }, 404)],
    ['that takes no POST there', 'wrong_path', json({ detail: 'Method Not Allowed' }, 405)],
    ['that does not know the model', 'model_unknown', failure(404, 'The model `large` does not exist.')],
    ['that refuses the credential', 'credential_refused', failure(401, 'no')],
    ['that asks for payment', 'payment_required', failure(402, 'no')],
    ['that limits the rate', 'rate_limited', failure(429, 'slower')],
    ['that fails', 'provider_failed', failure(500, 'oops')],
    [
      'that redirects',
      'redirected',
      (response) => void response.writeHead(308, { location: 'https://x.example' }).end(),
    ],
    ['that answers with nonsense', 'unusable_answer', json('nonsense')],
    ['that rejects the request', 'request_rejected', failure(400, 'no')],
    ['that answers with a stream of another kind', 'unusable_answer', events({})],
  ])('at an upstream %s is %s', async (_, cause, reply) => {
    upstream.begin(reply);
    expect(await causeAt(upstream.origin)).toBe(cause);
  });

  it('where nothing listens is connection_refused', async () => {
    expect(await causeAt('http://127.0.0.1:1')).toBe('connection_refused');
  });

  it('where another protocol is spoken is not_http', async () => {
    const server = createTcpServer((socket) => socket.end('SSH-2.0-OpenSSH\r\n'));
    servers.push(server);
    expect(await causeAt(`http://localhost:${await listening(server)}`)).toBe('not_http');
  });

  it('at a self-signed certificate is tls_self_signed', async () => {
    expect(await causeAt(`https://localhost:${await tls(TLS.cert)}`)).toBe('tls_self_signed');
  });

  it('at an expired certificate is tls_expired', async () => {
    setDefaultCACertificates([...authorities, expired]);
    expect(await causeAt(`https://localhost:${await tls(expired)}`)).toBe('tls_expired');
  });

  it('at a certificate for another name is tls_wrong_name', async () => {
    setDefaultCACertificates([...authorities, TLS.cert]);
    expect(await causeAt(`https://127.0.0.1:${await tls(TLS.cert)}`)).toBe('tls_wrong_name');
  });

  it('where TLS is spoken to a server without it is tls_failed', async () => {
    expect(await causeAt(upstream.origin.replace('http:', 'https:'))).toBe('tls_failed');
  });

  it.each([
    ['FIRST_BYTE_TIMEOUT_MS', 'first_byte_timeout'],
    ['TOTAL_TIMEOUT_MS', 'total_timeout'],
  ])('when %s passes is %s', async (variable, cause) => {
    upstream.begin(() => {});
    expect(await causeAt(upstream.origin, { [variable]: '300' })).toBe(cause);
  });

  it('when an answer stalls is idle_timeout', async () => {
    upstream.begin((response) => void response.writeHead(200, { 'content-length': '99' }).write('{'));
    expect(await causeAt(upstream.origin, { IDLE_TIMEOUT_MS: '300' })).toBe('idle_timeout');
  });

  it('after a stream has begun stands on its attempt', async () => {
    upstream.begin((response) => {
      writeEvents(response, chunk({ role: 'assistant', content: 'Hel' }));
      setTimeout(() => response.destroy(), 50);
    });
    gateway = await startGateway(upstreamEnv('acme', upstream.origin, 'large', 'large=2/8'));
    const answer = await chat(gateway, hello({ model: 'large', stream: true }));
    expect((await shown(gateway, answer)).attempts).toMatchObject([{ succeeded: false, cause: 'connection_reset' }]);
  });

  it('stands in a table of the command line', async () => {
    upstream.begin(failure(401, 'Incorrect API key provided: secret-of-acme'));
    gateway = await startGateway(upstreamEnv('acme', upstream.origin, 'large', 'large=2/8'));
    const answer = await post(gateway, hello({ model: 'large' }), [bearer(gateway.firstRun.gatewayKey), JSON_TYPE]);
    const { stdout } = await runIn(gateway.dataDir, {}, 'calls', 'show', String(answer.headers['x-request-id']));
    expect(stdout).toMatch(
      /^ATTEMPT +CREDENTIAL +MS +ANSWER +WHY\nacme\/large +service +\d+ +401 credential +credential_refused: The provider refused the credential\.$/m,
    );
    expect(stdout).not.toContain('secret-of-acme');
  });
});
