// Clients that do not send what they began: they may not hold a connection for ever.
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { chat, hello } from '../support/chat.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { callRows } from '../support/rows.ts';

let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startGateway({
    REQUEST_HEADERS_TIMEOUT_MS: '100',
    REQUEST_BODY_TIMEOUT_MS: '100',
    MAX_IN_FLIGHT: '2',
  });
});

afterAll(() => gateway.close());

/** What comes back, until the gateway ends the connection, to a request that stops after these bytes. */
function unfinished(bytes: string, { origin } = gateway): Promise<string> {
  const { port } = new URL(origin);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), '127.0.0.1', () => socket.write(bytes));
    let answer = '';
    socket.setEncoding('utf8').on('data', (text: string) => {
      answer += text;
    });
    socket.on('error', reject);
    socket.on('close', () => resolve(answer));
  });
}

const head = ({ origin } = gateway): string =>
  `POST /v1/chat/completions HTTP/1.1\r\nHost: ${new URL(origin).host}\r\n`;

/** A call whose body does not come. */
const halfSent = (to = gateway): string =>
  `${head(to)}Authorization: Bearer ${to.firstRun.gatewayKey}\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{`;

it('headers that never end are 408', async () => {
  expect(await unfinished(`${head()}X-Slow: `)).toMatch(/^HTTP\/1\.1 408 [\s\S]*"code":"request_timeout"}}$/);
});

it('the time for headers is part of the time for the whole request', async () => {
  const patient = await startGateway({ REQUEST_HEADERS_TIMEOUT_MS: '3000', REQUEST_BODY_TIMEOUT_MS: '3000' });
  const both = sleep(6000, 'both times, one after the other');

  const first = await Promise.race([unfinished(halfSent(patient), patient), both]);

  await patient.close();
  expect(first).toMatch(/^HTTP\/1\.1 408 /);
});

it('a body that never ends is ended, gives its place back, and leaves no call behind', async () => {
  const answers = await Promise.all([unfinished(halfSent()), unfinished(halfSent())]);

  expect(answers.every((answer) => /^HTTP\/1\.1 408 [\s\S]*"code":"request_timeout"}}$/.test(answer))).toBe(true);
  expect(callRows(gateway)).toEqual([]);
  expect((await chat(gateway, hello())).status).toBe(200);
});
