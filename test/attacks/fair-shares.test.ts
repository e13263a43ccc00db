// Callers who take all there is: of places, bytes and requests, everyone has a share, and the administrator a listener of their own.
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createKey } from '../../src/admin/keys/keys.ts';
import { createOrganization } from '../../src/admin/tenants/organizations.ts';
import { loadSecrets } from '../../src/store/secrets/secrets.ts';
import { bearer, chat, errorOf, hello } from '../support/chat.ts';
import { metricsOf, valuesOf } from '../support/exposition.ts';
import { addKey, startGateway, type TestGateway } from '../support/gateway.ts';
import { head, openRaw, type RawConnection } from '../support/raw.ts';
import { type Answer, send } from '../support/request.ts';
import {
  chunk,
  completion,
  json,
  startUpstream,
  type TestUpstream,
  upstreamEnv,
  writeEvents,
} from '../support/upstream.ts';

let upstream: TestUpstream;
let gateway: TestGateway;
const opened: Socket[] = [];

beforeEach(async () => {
  upstream = await startUpstream();
});

afterEach(async () => {
  for (const socket of opened.splice(0)) socket.destroy();
  await gateway.close();
  await upstream.close();
});

const start = async (env: Readonly<Record<string, string>>): Promise<void> => {
  gateway = await startGateway({ ...upstreamEnv('acme', upstream.origin, 'large', 'large=2/8'), ...env });
};

const OVERLOADED = [503, 'overloaded'];
const outcome = (answer: Answer): unknown[] => (answer.status === 200 ? [200] : [answer.status, errorOf(answer).code]);

const inFlight = async (listener = 'gateway'): Promise<number> =>
  valuesOf(await metricsOf(gateway), 'requests_in_flight')[listener] ?? Number.NaN;

/** A connection from an address of this machine that asks much and reads nothing of what comes back. */
async function silent(requests: string, localAddress = '127.0.0.1', origin = gateway.origin): Promise<Socket> {
  const socket = connect({ port: Number(new URL(origin).port), host: '127.0.0.1', localAddress }).pause();
  socket.on('error', () => {});
  opened.push(socket);
  await once(socket, 'connect');
  socket.write(requests);
  return socket;
}

/** The list of models, over and over: no system takes so much for a client that does not read. */
const lists = (...headers: string[]): string => head('GET /v1/models', ...headers).repeat(3000);

/** Lets what has been sent arrive. */
async function settledAt(expected: number): Promise<void> {
  while ((await inFlight()) < expected);
  for (let i = 0; i < 20; i += 1) await inFlight();
}

const models = (headers: readonly (readonly [string, string])[] = []): Promise<Answer> =>
  send(gateway.origin, { path: '/v1/models', headers });

describe('callers without a key', () => {
  it('have a tenth of the places for each address, however many connections they open', async () => {
    await start({ MAX_IN_FLIGHT: '100' });
    for (let i = 0; i < 20; i += 1) await silent(lists());
    await settledAt(10);

    expect(await inFlight()).toBe(10);
    expect(outcome(await models())).toEqual(OVERLOADED);
    const { said } = await openRaw(gateway.origin, head('GET /health'));
    expect(await said(/}$/)).toContain('200 OK');
  });

  it.runIf(process.platform === 'linux')('take nothing from another address', async () => {
    await start({ MAX_IN_FLIGHT: '100' });
    for (let i = 0; i < 20; i += 1) await silent(lists(), '127.0.0.2');
    await settledAt(10);

    expect(outcome(await models())).toEqual([200]);
  });

  it('take nothing from a key at the same address', async () => {
    await start({ MAX_IN_FLIGHT: '100' });
    for (let i = 0; i < 20; i += 1) await silent(lists());
    await settledAt(10);

    expect(outcome(await chat(gateway, hello()))).toEqual([200]);
    expect(outcome(await models([bearer(gateway.firstRun.gatewayKey)]))).toEqual([200]);
  });

  it('get no more by a header that anyone can write', async () => {
    await start({ MAX_IN_FLIGHT: '100' });
    for (let i = 0; i < 20; i += 1) await silent(lists(`X-Forwarded-For: 198.51.100.${i}`));
    await settledAt(10);

    expect(await inFlight()).toBe(10);
  });

  it('get no more by a key that is none, nor where no key is asked for', async () => {
    await start({ MAX_IN_FLIGHT: '100' });
    const key = 'Authorization: Bearer nonsense';
    for (let i = 0; i < 20; i += 1) {
      await silent(head('GET /v1/models').repeat(30) + head('GET /v1/models', key).repeat(100));
      await silent(head('GET /openapi.json', key).repeat(300));
    }
    await settledAt(10);

    expect(await inFlight()).toBe(10);
  });

  it('are distinguished by the header where proxies are named', async () => {
    await start({ MAX_IN_FLIGHT: '100', TRUSTED_PROXIES: '127.0.0.0/8' });
    for (let i = 0; i < 20; i += 1) await silent(lists('X-Forwarded-For: 198.51.100.7'));
    await settledAt(10);

    expect(outcome(await models([['x-forwarded-for', '198.51.100.7']]))).toEqual(OVERLOADED);
    expect(outcome(await models([['x-forwarded-for', '198.51.100.8']]))).toEqual([200]);
    expect(outcome(await models())).toEqual([200]);
  });

  it('are distinguished by network where addresses cost nothing', async () => {
    await start({ MAX_IN_FLIGHT: '100', TRUSTED_PROXIES: '127.0.0.0/8' });
    for (let i = 1; i <= 20; i += 1) await silent(lists(`X-Forwarded-For: 2001:db8::${i}`));
    await settledAt(10);

    expect(outcome(await models([['x-forwarded-for', '2001:db8::ffff']]))).toEqual(OVERLOADED);
    expect(outcome(await models([['x-forwarded-for', '2001:db8:0:1::1']]))).toEqual([200]);
  });
});

describe('callers with a key', () => {
  /** Streams that begin and do not end, as many as are asked for. */
  const streams = async (count: number, token: string): Promise<unknown[][]> => {
    upstream.begin((response) => writeEvents(response, chunk({ content: 'Hi' })));
    const body = JSON.stringify(hello({ model: 'large', stream: true }));
    const request = head(
      'POST /v1/chat/completions',
      `Authorization: Bearer ${token}`,
      'Content-Type: application/json',
      `Content-Length: ${body.length}`,
    );
    const begun: unknown[][] = [];
    for (let i = 0; i < count; i += 1) {
      const { socket, said } = await openRaw(gateway.origin, request + body);
      opened.push(socket);
      const text = await said(/"Hi"|}}$/);
      begun.push(text.includes('"overloaded"') ? OVERLOADED : [Number(text.slice(9, 12))]);
    }
    return begun;
  };
  const served = (count: number): unknown[][] => Array(count).fill([200]);
  const refused = (count: number): unknown[][] => Array(count).fill(OVERLOADED);

  /** A key of another organization than the first one's. */
  function foreignKey(): string {
    const [pepper] = loadSecrets(gateway.dataDir, { create: false }).peppers;
    const write = { now: Date.now(), pepper };
    const owned = { name: 'Other', ownerEmail: 'owner@other.example' };
    const { organization, project, owner } = createOrganization(gateway.db, owned, write);
    const actor = { kind: 'cli', organizationId: organization.id } as const;
    const body = { projectId: project.id, createdBy: owner.id };
    const { key } = createKey(gateway.db, actor, body, { ...write, expiresAt: null });
    return key.token ?? '';
  }

  it('have three fifths of the places for each key, and four fifths for each organization', async () => {
    await start({ MAX_IN_FLIGHT: '20' });
    const other = addKey(gateway, { description: 'Other' });

    expect(await streams(14, gateway.firstRun.gatewayKey)).toEqual([...served(12), ...refused(2)]);
    expect(await streams(6, other.token)).toEqual([...served(4), ...refused(2)]);
    expect(await streams(5, foreignKey())).toEqual([...served(4), ...refused(1)]);
  });
});

describe('an administrator', () => {
  const listKeys = (token = gateway.firstRun.masterKey): Promise<Answer> =>
    send(gateway.management, { path: '/v1/master/keys', headers: [bearer(token)] });

  it('is served whatever happens on the other listener', async () => {
    await start({ MAX_IN_FLIGHT: '1' });
    upstream.begin(() => {});
    void chat(gateway, hello({ model: 'large' })).catch(() => {});
    await settledAt(1);

    expect([outcome(await models()), outcome(await listKeys())]).toEqual([OVERLOADED, [200]]);
    await upstream.close();
    upstream = await startUpstream();
  });

  it('is served whatever callers without a key do on their own', async () => {
    await start({ RATE_LIMIT_MANAGEMENT_PER_MINUTE: '50' });
    for (let i = 0; i < 20; i += 1) {
      await silent(head('GET /openapi.json').repeat(1000), '127.0.0.1', gateway.management);
    }
    while ((await inFlight('management')) < 10);
    const guesses = [];
    for (let i = 0; i < 60; i += 1) guesses.push((await listKeys('pclm_nonsense')).status);

    expect(new Set(guesses)).toEqual(new Set([503]));
    expect(outcome(await listKeys())).toEqual([200]);
  });

  it('has so many requests a minute for each master key, and who has none for each address', async () => {
    await start({ RATE_LIMIT_MANAGEMENT_PER_MINUTE: '3' });
    const all = async (ask: () => Promise<Answer>) => {
      const outcomes = [];
      for (let i = 0; i < 4; i += 1) outcomes.push(outcome(await ask()));
      return outcomes;
    };
    const LIMITED = [429, 'rate_limit_exceeded'];

    const invalid = [401, 'invalid_api_key'];
    expect(await all(() => listKeys('nonsense'))).toEqual([invalid, invalid, invalid, LIMITED]);
    expect(await all(() => listKeys())).toEqual([[200], [200], [200], LIMITED]);
    const answer = await listKeys();
    expect([
      errorOf(answer).message,
      answer.headers['retry-after'],
      answer.headers['x-ratelimit-limit-requests'],
    ]).toEqual([
      expect.stringMatching(/^Your master key has made its 3 requests of this minute\./),
      expect.stringMatching(/^\d+$/),
      '3',
    ]);
  });
});

describe('one connection', () => {
  it('is served 32 requests at once, and the others in their turn', async () => {
    await start({});
    let atOnce = 0;
    let most = 0;
    upstream.begin(async (response) => {
      atOnce += 1;
      most = Math.max(most, atOnce);
      await sleep(50);
      atOnce -= 1;
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' } }] }));
    });
    const request = (i: number, last: boolean): string => {
      const body = JSON.stringify(hello({ model: 'large', user: `user-${i}` }));
      return `${head(
        'POST /v1/chat/completions',
        `Authorization: Bearer ${gateway.firstRun.gatewayKey}`,
        'Content-Type: application/json',
        `X-Request-Id: number-${i}`,
        ...(last ? ['Connection: close'] : []),
        `Content-Length: ${body.length}`,
      )}${body}`;
    };

    const { ended } = await openRaw(
      gateway.origin,
      Array.from({ length: 100 }, (_, i) => request(i, i === 99)).join(''),
    );
    const answers = (await ended).split('HTTP/1.1 ').slice(1);

    expect(most).toBe(32);
    expect(answers.map((answer) => [answer.slice(0, 3), /number-\d+/.exec(answer)?.[0]])).toEqual(
      Array.from({ length: 100 }, (_, i) => ['200', `number-${i}`]),
    );
  });

  it('ends when it brings thousands of requests at once', async () => {
    await start({});
    upstream.begin(() => {});
    const body = JSON.stringify(hello({ model: 'large' }));
    const asked = head(
      'POST /v1/chat/completions',
      `Authorization: Bearer ${gateway.firstRun.gatewayKey}`,
      'Content-Type: application/json',
      `Content-Length: ${body.length}`,
    );
    const connections: RawConnection[] = [];
    for (let i = 0; i < 3; i += 1) {
      connections.push(
        await openRaw(gateway.origin, (asked + body).repeat(32) + 'GET / HTTP/1.1\r\n\r\n'.repeat(3000)),
      );
    }

    await Promise.race(connections.map(({ ended }) => ended));
    for (const { socket } of connections) socket.destroy();
    expect(outcome(await chat(gateway, hello()))).toEqual([200]);
    while ((await inFlight()) > 0);
  });
});

describe('a client', () => {
  const IDLE_MS = 2000;

  /** A stream without an end: resolves with the milliseconds from the last piece of it that was taken until it was given up. */
  function endless(): Promise<number> {
    const given = Promise.withResolvers<number>();
    upstream.begin(async (response) => {
      const left = once(response, 'close');
      let takenAt = performance.now();
      while (!response.destroyed) {
        writeEvents(response, chunk({ content: 'x'.repeat(64 * 1024) }));
        if (response.writableNeedDrain) await Promise.race([once(response, 'drain'), left]);
        if (!response.destroyed) takenAt = performance.now();
      }
      given.resolve(performance.now() - takenAt);
    });
    return given.promise;
  }

  const request = (more: object): string => {
    const body = JSON.stringify(hello({ model: 'large', ...more }));
    const headers = ['Content-Type: application/json', `Content-Length: ${body.length}`];
    return head('POST /v1/chat/completions', `Authorization: Bearer ${gateway.firstRun.gatewayKey}`, ...headers) + body;
  };

  it('that stops reading is cut after one idle time, not two', async () => {
    await start({ IDLE_TIMEOUT_MS: String(IDLE_MS), KEEP_ALIVE_COMMENT_MS: '100' });
    const given = endless();
    await silent(request({ stream: true }));

    const elapsed = await given;
    expect(elapsed).toBeGreaterThan(0.9 * IDLE_MS);
    expect(elapsed).toBeLessThan(1.7 * IDLE_MS);
  });

  /** Reads for so long, 64 KB at a time. @returns the bytes that came */
  async function readSlowly(socket: Socket, forMs: number): Promise<number> {
    let bytes = 0;
    const count = (data: Buffer): void => {
      bytes += data.length;
    };
    socket.on('data', count).pause();
    const until = performance.now() + forMs;
    while (performance.now() < until) {
      socket.resume();
      await once(socket, 'data');
      socket.pause();
      await sleep(20);
    }
    socket.off('data', count);
    return bytes;
  }

  it('that reads a stream slowly is never cut', async () => {
    await start({ IDLE_TIMEOUT_MS: String(IDLE_MS) });
    void endless();
    const socket = await silent(request({ stream: true }));
    await readSlowly(socket, 4 * IDLE_MS);

    expect([socket.closed, socket.readableEnded]).toEqual([false, false]);
  });

  it('that reads one large answer slowly is never cut', async () => {
    await start({ IDLE_TIMEOUT_MS: String(IDLE_MS) });
    upstream.begin(json(completion('x'.repeat(16_000_000))));
    const socket = await silent(request({}));
    const bytes = await readSlowly(socket, 2 * IDLE_MS);

    expect(bytes).toBeLessThan(16_000_000);
    socket.resume();
    await once(socket, 'data');
    expect([socket.closed, socket.readableEnded]).toEqual([false, false]);
  });
});
