// Bodies that take far more memory than bytes: what they take is accounted for before it is taken.
import { rmSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { bodyMemory } from '../../src/http/body.ts';
import { measureJson } from '../../src/lib/json.ts';
import { serve } from '../process/running.ts';
import { bearer, hello, JSON_TYPE } from '../support/chat.ts';
import { metricsOf, valuesOf } from '../support/exposition.ts';
import { newDataDir, startGateway } from '../support/gateway.ts';
import { GUARD_URL } from '../support/network-guard-env.ts';
import { head, openRaw } from '../support/raw.ts';
import { send } from '../support/request.ts';
import { completion, json, startUpstream, type TestUpstream, upstreamEnv } from '../support/upstream.ts';

const MB = 1024 * 1024;
const UNBOUNDED = { depth: 1000, values: 1e9, fields: 1e9 };

describe('what a body is counted as', () => {
  const COUNT = 100_000;
  const listOf = (each: (i: number) => string): string =>
    `[${Array.from({ length: COUNT }, (_, i) => each(i)).join()}]`;

  setFlagsFromString('--expose-gc');
  const collect: () => void = runInNewContext('gc');

  /** Bytes that are still taken when all that is not needed is gone. */
  function taken(body: Buffer): number {
    const used = (): number => {
      for (let i = 0; i < 3; i += 1) collect();
      return process.memoryUsage().heapUsed;
    };
    const before = used();
    const held: unknown[] = [JSON.parse(body.toString())];
    const after = used();
    return held.length * (after - before);
  }

  it.each([
    ['empty objects', () => '{}'],
    ['empty lists', () => '[]'],
    ['lists of one', () => '[0]'],
    ['nested lists', () => '[[[[[[]]]]]]'],
    ['numbers among texts', (i: number) => (i === 0 ? '"a"' : `${i}.5`)],
    ['short texts', (i: number) => `"${i.toString(36)}"`],
    ['short wide texts', (i: number) => `"\u4e00${i.toString(36)}"`],
    ['objects alike', (i: number) => `{"role":"user","content":"${i}"}`],
    ['objects with a name like no other', (i: number) => `{"k${i}":0}`],
    ['objects with ten such names', (i: number) => (i % 10 === 0 ? `{${listOfNames(i)}}` : '0')],
    ['objects with a number as name', () => '{"49":0}'],
    ['objects with a large number as name', (i: number) => `{"${i}":0}`],
    ['objects with __proto__', () => '{"__proto__":{}}'],
    ['objects in objects', () => '{"a":{"b":{"c":{}}}}'],
  ])('is never less than it takes: %s', (_, each) => {
    const body = Buffer.from(listOf(each));

    expect(taken(body)).toBeLessThan(bodyMemory(body, measureJson(body, UNBOUNDED)));
  });

  const listOfNames = (i: number): string => Array.from({ length: 10 }, (_, j) => `"k${i}-${j}":0`).join();

  it.each([
    ['plain text', 'x'.repeat(10 * MB)],
    ['text with one wide character', `\u4e00${'x'.repeat(10 * MB)}`],
    ['text with one escape', `\\u4e00${'x'.repeat(10 * MB)}`],
  ])('is never less than it takes: %s', (_, text) => {
    const body = Buffer.from(`"${text}"`);

    expect(taken(body)).toBeLessThan(bodyMemory(body, measureJson(body, UNBOUNDED)));
  });
});

describe('a process with little memory', () => {
  let dataDir: string;
  let upstream: TestUpstream;

  beforeEach(async () => {
    dataDir = newDataDir();
    upstream = await startUpstream();
  });

  afterEach(async () => {
    await upstream.close();
    rmSync(dataDir, { recursive: true, force: true });
  });

  it('refuses what would end it, serves what fits, and lives: 26 calls at once of 9.9 MB of empty objects, and of 1.5 MB', async () => {
    const server = await serve({
      DATA_DIR: dataDir,
      NODE_OPTIONS: `--import=${GUARD_URL} --max-old-space-size=256`,
      ...upstreamEnv('acme', upstream.origin, 'large', 'large=2/8'),
      MAX_BUFFERED_BYTES: String(100 * MB),
      MAX_JSON_VALUES: '999999999',
      LOG_LEVEL: 'silent',
    });
    const together = Promise.withResolvers<void>();
    upstream.begin(async (response, received) => {
      await together.promise;
      await json(completion('Hi'))(response, received);
    });
    const post = async (bytes: number): Promise<number> => {
      const objects = `[${'{},'.repeat(bytes / 3)}{}]`;
      const tools = `[{"type":"function","function":{"name":"f","parameters":{"enum":${objects}}}}]`;
      const body = `${JSON.stringify(hello({ model: 'large' })).slice(0, -1)},"tools":${tools}}`;
      const headers = [bearer(server.key ?? ''), JSON_TYPE];
      return (await send(server.origin, { method: 'POST', path: '/v1/chat/completions', headers, body })).status;
    };
    const all = (bytes: number): Promise<number>[] => Array.from({ length: 26 }, () => post(bytes));

    const large = await Promise.all(all(9.9 * MB));
    const small = all(1.5 * MB);
    const refused = await Promise.race(small);
    together.resolve();
    const statuses = await Promise.all(small);

    expect(new Set(large)).toEqual(new Set([503]));
    expect([refused, new Set(statuses)]).toEqual([503, new Set([200, 503])]);
    expect(await post(3)).toBe(200);
    expect(server.child.exitCode).toBeNull();
  });
});

it('a body in pieces of a byte counts as what its buffer takes, while it comes', async () => {
  const gateway = await startGateway();
  const request = head(
    'POST /v1/chat/completions',
    `Authorization: Bearer ${gateway.firstRun.gatewayKey}`,
    'Content-Type: application/json',
    'Transfer-Encoding: chunked',
  );
  const { socket } = await openRaw(gateway.origin, `${request}${'1\r\nx\r\n'.repeat(10_000)}`);
  const held = async () => valuesOf(await metricsOf(gateway), 'buffered_body_bytes').gateway ?? 0;
  while ((await held()) < 10_000);

  expect(await held()).toBeLessThanOrEqual(20_000);
  socket.destroy();
  while ((await held()) > 0);
  await gateway.close();
});
