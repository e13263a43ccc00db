// A client that does not read while the upstream never stops: what the gateway takes stays bounded (src/core/README.md, "streams").
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hello } from '../support/chat.ts';
import { expectGoodCall, type FaultWorld, startFaultWorld } from '../support/fault-check.ts';
import { beginning, event, piece } from '../support/fault-replies.ts';
import type { FaultExchange } from '../support/fault-server.ts';
import { callRows, settled } from '../support/rows.ts';
import { chunk } from '../support/upstream.ts';

let world: FaultWorld;

beforeAll(async () => {
  world = await startFaultWorld({ MAX_RESPONSE_BYTES: '4000000000' });
});

afterAll(() => world.close());

const STREAMS = 8;
const PIECE = piece(event(chunk({ content: 'x'.repeat(64 * 1024) })));

/** What one stream may take that nobody reads: most of it is the kernel's, in the buffers of two connections. */
const MOST_BYTES = 64_000_000;
/** What one stream may hold in this process, which is client, gateway and upstream at once. */
const MOST_MEMORY = 4_000_000;

/** A client that asks for a stream, and reads nothing. */
function askAndWait(body: object): Socket {
  const { host, port } = new URL(world.gateway.origin);
  const text = JSON.stringify(body);
  const socket = connect(Number(port), '127.0.0.1');
  socket.pause();
  socket.on('error', () => {});
  socket.write(
    `POST /v1/chat/completions HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${world.gateway.firstRun.gatewayKey}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${text.length}\r\n\r\n${text}`,
  );
  return socket;
}

interface Torrent {
  /** Bytes that the gateway, or the kernel for it, has taken of each stream. */
  readonly taken: number[];
  readonly left: Promise<void>[];
}

function begin(): Torrent {
  const torrent: Torrent = { taken: [], left: [] };
  world.faulty.begin(async (exchange: FaultExchange) => {
    const position = torrent.taken.push(0) - 1;
    torrent.left.push(exchange.closed);
    await exchange.write(beginning());
    while (!exchange.isClosed) {
      await exchange.write(PIECE);
      torrent.taken[position] = (torrent.taken[position] ?? 0) + PIECE.length;
    }
  });
  return torrent;
}

/** Waits until nothing moves any more, or too much has moved. */
async function stuck({ taken }: Torrent): Promise<void> {
  let seen = '';
  while (taken.length < STREAMS || (seen !== taken.join() && Math.max(...taken) < MOST_BYTES)) {
    seen = taken.join();
    await sleep(500);
  }
}

setFlagsFromString('--expose-gc');
const collectGarbage: unknown = runInNewContext('gc');

/** Bytes that are in use, garbage not counted. */
const memory = (): number => {
  if (typeof collectGarbage !== 'function') throw new Error('the garbage cannot be collected');
  collectGarbage();
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
};

describe('clients that do not read', () => {
  it('hold back upstreams that never stop, and cancel them when they leave', async () => {
    const torrent = begin();
    const before = memory();
    const clients = Array.from({ length: STREAMS }, () => askAndWait(hello({ model: 'zeta/shared', stream: true })));

    await stuck(torrent);

    expect(Math.max(...torrent.taken)).toBeLessThan(MOST_BYTES);
    expect(memory() - before).toBeLessThan(STREAMS * MOST_MEMORY);

    for (const client of clients) client.destroy();
    await Promise.all(torrent.left);
    for (const { requestId: id } of callRows(world.gateway)) {
      expect(await settled(world.gateway, id)).toMatchObject({ state: 'settled', statusCode: 499 });
    }
    await expectGoodCall(world, 'streamed');
  });
});
