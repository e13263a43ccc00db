// No test reaches outside loopback, nor does what a test starts.
import { createSocket } from 'node:dgram';
import { lookup, promises, Resolver, resolve4 } from 'node:dns';
import { get } from 'node:http';
import { connect } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { promisify } from 'node:util';
import { Worker } from 'node:worker_threads';
import { Pool } from 'undici';
import { describe, expect, it, onTestFinished } from 'vitest';
import { start } from './process/running.ts';
import { takeAttempts } from './support/network-guard-setup.ts';
import { startUpstream } from './support/upstream.ts';

/** An address for documentation, and a name that never is one: where the guard fails, nobody is there. */
const ADDRESS = '192.0.2.1';
const NAME = 'portcullis.invalid';

const failureOf = (emitter: { on(name: 'error', listener: (error: Error) => void): unknown }): Promise<Error> =>
  new Promise((resolve) => emitter.on('error', resolve));

const thrown = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  );

const CONNECTS: readonly (readonly [string, () => Promise<unknown>])[] = [
  ['net', () => failureOf(connect(80, ADDRESS))],
  ['net, with options', () => failureOf(connect({ port: 80, host: ADDRESS }))],
  ['tls', () => failureOf(connectTls({ port: 80, host: ADDRESS }))],
  ['http', () => failureOf(get(`http://${ADDRESS}/`))],
  ['fetch', () => thrown(fetch(`http://${ADDRESS}/`))],
  ['undici', () => thrown(new Pool(`http://${ADDRESS}`).request({ path: '/', method: 'GET' }))],
];

const NAMED: readonly (readonly [string, () => Promise<unknown>])[] = [
  ['net', () => failureOf(connect(80, NAME))],
  ['fetch', () => thrown(fetch(`http://${NAME}/`))],
  ['undici', () => thrown(new Pool(`http://${NAME}`).request({ path: '/', method: 'GET' }))],
  ['a look-up', () => thrown(promisify(lookup)(NAME))],
  ['a look-up by promise', () => thrown(promises.lookup(NAME))],
];

const ASKED: readonly (readonly [string, () => Promise<unknown>])[] = [
  ['a callback', () => thrown(promisify(resolve4)(NAME))],
  ['a promise', () => thrown(promises.resolve4(NAME))],
  ['a resolver', () => new Promise((resolve) => new Resolver().resolve4(NAME, resolve))],
  ['a promised resolver', () => thrown(new promises.Resolver().resolve4(NAME))],
];

describe('the guard', () => {
  it.each(CONNECTS)('lets nothing connect to an address elsewhere by %s', async (_, attempt) => {
    expect(await attempt()).toBeInstanceOf(Error);
    expect(takeAttempts()).toEqual([`connect to ${ADDRESS}:80`]);
  });

  it.each(NAMED)('lets nothing find a name by %s', async (_, attempt) => {
    expect(await attempt()).toBeInstanceOf(Error);
    expect(takeAttempts()).toEqual([`look up ${NAME}`]);
  });

  it.each(ASKED)('lets nothing ask a name server by %s', async (_, attempt) => {
    expect(await attempt()).toBeInstanceOf(Error);
    expect(takeAttempts()).toEqual([`look up ${NAME} by resolve4`]);
  });

  it('lets nothing connect to what a look-up of a test has found elsewhere', async () => {
    const socket = connect({ port: 80, host: NAME, lookup: (_name, _options, found) => found(null, ADDRESS, 4) });

    expect(await failureOf(socket)).toBeInstanceOf(Error);
    expect(takeAttempts()).toEqual([`connect to ${ADDRESS}, found for ${NAME}`]);
  });

  it('lets no datagram out', () => {
    const socket = createSocket('udp4');
    onTestFinished(() => {
      socket.close();
    });

    expect(() => socket.send('x', 53, ADDRESS)).toThrow('network guard');
    expect(takeAttempts()).toEqual([`send a datagram to ${ADDRESS}`]);
  });

  it.each(['127.0.0.1', 'localhost'])('lets a test reach its own servers at %s', async (host) => {
    const upstream = await startUpstream();
    onTestFinished(() => upstream.close());

    const response = await fetch(upstream.origin.replace('127.0.0.1', host), { method: 'POST', body: '{}' });

    expect([response.status, takeAttempts()]).toEqual([200, []]);
  });
});

/** A script, as the file of a worker would be, that tries to leave. */
const LEAVE = `data:text/javascript,${encodeURIComponent(
  `import { connect } from 'node:net'; connect(80, '${ADDRESS}').on('error', () => {});`,
)}`;
const ATTEMPT = `connect to ${ADDRESS}:80`;

describe('the guard is in force', () => {
  it('in a worker', async () => {
    const worker = new Worker(new URL(LEAVE));
    await new Promise((resolve) => worker.on('exit', resolve));

    expect(takeAttempts()).toEqual([ATTEMPT]);
  });

  it('in a process that a test starts, and in a worker of it', async () => {
    const file = JSON.stringify(LEAVE);
    const script = `import(${file}); new (require('node:worker_threads').Worker)(new URL(${file}))`;

    const { code } = await start(process.execPath, ['-e', script], {}).ended;

    expect([code, takeAttempts()]).toEqual([0, [ATTEMPT, ATTEMPT]]);
  });
});

describe("nothing of the tester's environment", () => {
  it('reaches a process that a test starts', async () => {
    process.env.OPENAI_API_KEY = 'sk-real';
    onTestFinished(() => {
      delete process.env.OPENAI_API_KEY;
    });

    const { stdout } = await start(process.execPath, ['-p', 'Object.keys(process.env).sort().join()'], {}).ended;

    expect(stdout).toBe('CHECK_PROVIDERS,NETWORK_GUARD_LOG,NODE_OPTIONS,PATH\n');
  });
});
