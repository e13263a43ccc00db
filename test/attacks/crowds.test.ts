// Many connections at once: who comes after a crowd is let in soon, whatever the crowd wants.
import { once } from 'node:events';
import { connect } from 'node:net';
import { performance } from 'node:perf_hooks';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startGateway, type TestGateway } from '../support/gateway.ts';

let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startGateway();
});

afterAll(() => gateway.close());

const CROWD = 64;

/** The turn of the event loop, which the gateway and the crowd share here, in which the answer came. */
async function answeredIn(port: number): Promise<number> {
  const socket = connect({ port, host: '127.0.0.1' });
  socket.write('GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n');
  const [answer]: unknown[] = await once(socket, 'data');
  const turn = performance.nodeTiming.uvMetricsInfo.loopCount;
  expect(String(answer)).toContain('HTTP/1.1 200 OK');
  socket.destroy();
  return turn;
}

describe.runIf(process.platform === 'linux')('a crowd', () => {
  it.each(['the gateway', 'the management host'])(
    'is let in by %s many at a time, not one in each turn',
    async (which) => {
      const { port } = new URL(which === 'the gateway' ? gateway.origin : gateway.management);
      const turns = await Promise.all(Array.from({ length: CROWD }, () => answeredIn(Number(port))));
      expect(Math.max(...turns) - Math.min(...turns)).toBeLessThan(CROWD / 2);
    },
  );
});

it('an address that another gateway has is in use, also where several sockets could share it', async () => {
  const { port } = new URL(gateway.origin);
  await expect(startGateway({ PORT: port })).rejects.toThrow(
    `PORT: cannot listen on 127.0.0.1:${port}: the address is in use.`,
  );
});
