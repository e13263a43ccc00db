// How the events of a stream are put on the wire; what they say is tested by the routes.
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { writeEventStream } from '../../src/http/inference.ts';

let server: Server | undefined;

afterEach(() => {
  server?.closeAllConnections();
  server?.close();
});

/** Serves the chunks as an event stream to a client that reads bytes. */
async function streamOf(chunks: AsyncIterable<object>): Promise<Socket> {
  server = createServer((_request, response) => {
    const { signal } = new AbortController();
    void writeEventStream(response, chunks, {
      signal,
      keepAliveMs: 60_000,
      end: '[DONE]',
      formed: (chunk) => chunk,
      onFailure: () => {},
    });
  });
  const listening = server;
  await new Promise<void>((resolve) => listening.listen(0, '127.0.0.1', resolve));
  const { port }: AddressInfo = portOf(listening);
  const socket = connect(port, '127.0.0.1');
  socket.setEncoding('latin1').write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  return socket;
}

function portOf(listening: Server): AddressInfo {
  const address = listening.address();
  if (address === null || typeof address === 'string') throw new Error('no network listener');
  return address;
}

/** The pieces of a chunked answer, as they were written. */
async function piecesOf(socket: Socket): Promise<string[]> {
  let text = '';
  for await (const part of socket) text += part;
  let rest = text.slice(text.indexOf('\r\n\r\n') + 4);
  const pieces: string[] = [];
  for (;;) {
    const line = rest.indexOf('\r\n');
    const length = Number.parseInt(rest.slice(0, line), 16);
    if (!(length > 0)) return pieces;
    pieces.push(rest.slice(line + 2, line + 2 + length));
    rest = rest.slice(line + 2 + length + 2);
  }
}

async function* numbers(count: number, text = ''): AsyncGenerator<object> {
  for (let number = 0; number < count; number += 1) yield { number, text };
}

describe('an event stream', () => {
  it('writes the events that come in one turn in one piece, the end included', async () => {
    const pieces = await piecesOf(await streamOf(numbers(3)));

    expect(pieces).toEqual([
      'data: {"number":0,"text":""}\n\ndata: {"number":1,"text":""}\n\ndata: {"number":2,"text":""}\n\ndata: [DONE]\n\n',
    ]);
  });

  it('holds no event back for the next one', async () => {
    const { promise: seen, resolve } = Promise.withResolvers<void>();
    async function* waiting(): AsyncGenerator<object> {
      yield { first: true };
      await seen;
      yield { second: true };
    }
    const socket = await streamOf(waiting());
    socket.on('data', (text) => {
      if (String(text).includes('first')) resolve();
    });

    expect(await piecesOf(socket)).toEqual(['data: {"first":true}\n\n', 'data: {"second":true}\n\ndata: [DONE]\n\n']);
  });

  it('keeps the order of more events than are held at once', async () => {
    const pieces = await piecesOf(await streamOf(numbers(100, 'x'.repeat(1000))));

    expect(pieces.join('').match(/"number":\d+|DONE/g)).toEqual([
      ...Array.from({ length: 100 }, (_, number) => `"number":${number}`),
      'DONE',
    ]);
  });
});
