import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { overloaded } from '../../src/domain/errors.ts';
import type { OutboundResponse } from '../../src/net/exchange.ts';
import {
  createTransport,
  type OutboundRequest,
  type Transport,
  type TransportOptions,
} from '../../src/net/transport.ts';
import { parseLarge } from '../providers/answers.ts';
import { serve, serveRaw } from './loopback-server.ts';

const LONG = 20_000;

function open(options: Partial<TransportOptions> = {}): Transport {
  const transport = createTransport({
    connectTimeoutMs: LONG,
    firstByteTimeoutMs: LONG,
    idleTimeoutMs: LONG,
    totalTimeoutMs: LONG,
    maxResponseBytes: 1_000_000,
    parseLarge,
    ...options,
  });
  onTestFinished(() => transport.close());
  return transport;
}

const post = (origin: string, more: Partial<OutboundRequest> = {}): OutboundRequest => ({
  origin,
  path: '/v1/x?y=1',
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: '{"a":"ä"}',
  stream: false,
  addresses: 'trusted',
  ...more,
});

const send = (transport: Transport, request: OutboundRequest, signal = new AbortController().signal) =>
  transport.send(request, { signal, share: 'org', room: () => {} });

const events = (response: ServerResponse): void => {
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
};

async function readAll(response: OutboundResponse): Promise<string> {
  if (response.kind === 'gathered') throw new Error('not a stream');
  const chunks: Buffer[] = [];
  for await (const chunk of response.chunks) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}

describe('an exchange', () => {
  it('sends method, path, headers and body, asks for no content encoding, and gathers the answer', async () => {
    const origin = await serve(async (request, response) => {
      const { method, url, headers } = request;
      const seen = { method, url, type: headers['content-type'], encoding: headers['accept-encoding'] };
      response.setHeader('x-answer', 'yes');
      response.end(JSON.stringify({ ...seen, body: await bodyOf(request) }));
    });
    const response = await send(open(), post(origin));
    expect(response).toMatchObject({ kind: 'gathered', status: 200, headers: { 'x-answer': 'yes' } });
    expect(JSON.parse(response.kind === 'gathered' ? response.text : '')).toEqual({
      method: 'POST',
      url: '/v1/x?y=1',
      type: 'application/json',
      encoding: 'identity',
      body: '{"a":"ä"}',
    });
  });

  it('joins a body that comes in pieces, even inside a character', async () => {
    const bytes = Buffer.from('"grüße"');
    const origin = await serve(async (_request, response) => {
      for (const byte of bytes) {
        response.write(Buffer.from([byte]));
        await sleep(1);
      }
      response.end();
    });
    expect(await send(open(), post(origin))).toMatchObject({ text: '"grüße"' });
  });

  it('keeps connections for the exchanges that follow', async () => {
    const ports = new Set<number | undefined>();
    const origin = await serve((request, response) => {
      ports.add(request.socket.remotePort);
      response.end('{}');
    });
    const transport = open();
    for (let i = 0; i < 10; i++) await send(transport, post(origin));
    // undici lets a connection rest for one turn of the event loop, so two take turns.
    expect(ports.size).toBeLessThanOrEqual(2);
  });

  it('follows no redirect', async () => {
    const origin = await serve((_request, response) => {
      response.writeHead(307, { location: '/elsewhere' }).end();
    });
    expect(await send(open(), post(origin))).toMatchObject({ kind: 'gathered', status: 307 });
  });

  it.each(['gzip', 'identity, br'])('refuses the content encoding %s', async (encoding) => {
    const origin = await serve((_request, response) => {
      response.writeHead(200, { 'content-encoding': encoding }).end('x');
    });
    await expect(send(open(), post(origin))).rejects.toMatchObject({ name: 'TransportError', kind: 'bad_response' });
  });

  it('refuses what is not HTTP', async () => {
    const origin = await serveRaw((socket) => socket.end('SSH-2.0-OpenSSH_9.6\r\n\r\n'));
    await expect(send(open(), post(origin))).rejects.toMatchObject({ kind: 'bad_response' });
  });

  it('fails as a lost connection when nobody listens', async () => {
    const origin = await serveRaw(() => {});
    const unused = origin.replace(/:\d+$/, ':1');
    await expect(send(open(), post(unused))).rejects.toMatchObject({ kind: 'connection' });
  });

  it('fails as a lost connection when the answer is cut', async () => {
    const origin = await serve((_request, response) => {
      response.writeHead(200, { 'content-length': 100 });
      response.write('half', () => response.destroy());
    });
    await expect(send(open(), post(origin))).rejects.toMatchObject({ kind: 'connection' });
  });

  it('refuses a gathered answer over the limit and takes one of just that size', async () => {
    const origin = await serve((request, response) => {
      response.end('x'.repeat(request.url === '/more' ? 1001 : 1000));
    });
    const transport = open({ maxResponseBytes: 1000 });
    await expect(send(transport, post(origin, { path: '/more' }))).rejects.toMatchObject({ kind: 'too_large' });
    expect(await send(transport, post(origin, { path: '/just' }))).toMatchObject({ text: 'x'.repeat(1000) });
  });

  it('serves again after a failure', async () => {
    const origin = await serve((request, response) => {
      if (request.url === '/cut') response.destroy();
      else response.end('{}');
    });
    const transport = open();
    await expect(send(transport, post(origin, { path: '/cut' }))).rejects.toMatchObject({ kind: 'connection' });
    expect(await send(transport, post(origin))).toMatchObject({ status: 200 });
  });
});

describe('an answer that is too much', () => {
  const HEAD = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n';
  const many = (text: string) => text.repeat(1_000_000 / text.length);

  /** A server that answers so, and then nothing. */
  const answers = (text: string) => serveRaw((socket) => socket.once('data', () => socket.write(text)));

  it.each([
    ['its status line', `HTTP/1.1 200 ${many('x')}`],
    ['a header', `${HEAD}x: ${many('x')}`],
    ['its headers', HEAD + many('a: b\r\n')],
    ['interim answers', many('HTTP/1.1 102 Processing\r\n\r\n')],
    ['the extension of a chunk', `${HEAD}\r\n1;${many('x')}`],
    ['its trailer', `${HEAD}\r\n1\r\nx\r\n0\r\n${many('a: b\r\n')}`],
    ['one field of its trailer', `${HEAD}\r\n1\r\nx\r\n0\r\na: ${many('x')}`],
  ])('is refused for %s without end', async (_name, text) => {
    await expect(send(open(), post(await answers(text)))).rejects.toMatchObject({ kind: 'bad_response' });
  });

  it('leaves nothing behind that the next one would suffer from', async () => {
    let asked = 0;
    const origin = await serveRaw((socket) =>
      socket.on('data', () => {
        asked += 1;
        socket.write(asked % 2 === 1 ? HEAD + many('a: b\r\n') : 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}');
      }),
    );
    const transport = open({ maxConnections: 1 });
    for (let count = 0; count < 5; count += 1) {
      await expect(send(transport, post(origin))).rejects.toMatchObject({ kind: 'bad_response' });
      expect(await send(transport, post(origin))).toMatchObject({ text: '{}' });
    }
  });

  it('may have an interim answer, a trailer, and up to half a million pieces', async () => {
    const piece = '1\r\nx\r\n';
    const interim = 'HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n';
    const most = await answers(`${interim}${HEAD}\r\n${piece.repeat(500_000)}0\r\nx-trailer: y\r\n\r\n`);
    expect(await send(open(), post(most))).toMatchObject({ text: 'x'.repeat(500_000) });
    const more = await answers(`${HEAD}\r\n${piece.repeat(500_001)}0\r\n\r\n`);
    await expect(send(open(), post(more))).rejects.toMatchObject({ kind: 'too_large' });
  });

  it('keeps its status when it is a failure, with the first 64 KiB of its text', async () => {
    const origin = await serve((_request, response) => response.writeHead(422).end('x'.repeat(500_000)));
    expect(await send(open(), post(origin))).toMatchObject({ status: 422, text: 'x'.repeat(65_536) });
  });

  it('is refused as soon as there is no room for it', async () => {
    const left = Promise.withResolvers<void>();
    const origin = await serve((_request, response) => {
      response.on('close', left.resolve);
      response.write('x'.repeat(500_000));
    });
    const sizes: number[] = [];
    const room = (bytes: number): void => {
      sizes.push(bytes);
      if (bytes > 200_000) throw overloaded();
    };
    const sent = open().send(post(origin), { signal: new AbortController().signal, share: 'org', room });
    await expect(sent).rejects.toMatchObject({ status: 503, code: 'overloaded' });
    await left.promise;
    expect(Math.min(...sizes)).toBeGreaterThan(65_536);
  });
});

describe('timeouts', () => {
  it('fires while the headers are awaited', async () => {
    const origin = await serve(() => {});
    const failure = send(open({ firstByteTimeoutMs: 50 }), post(origin));
    await expect(failure).rejects.toMatchObject({ kind: 'timeout', phase: 'first_byte' });
  });

  it('fires when a gathered body stalls', async () => {
    const origin = await serve((_request, response) => {
      response.writeHead(200, { 'content-length': 100 }).write('half');
    });
    const failure = send(open({ idleTimeoutMs: 50 }), post(origin));
    await expect(failure).rejects.toMatchObject({ kind: 'timeout', phase: 'idle' });
  });

  it('fires when a stream stalls, after what came before', async () => {
    const origin = await serve((_request, response) => {
      events(response);
      response.write('data: 1\n\n');
    });
    const response = await send(open({ idleTimeoutMs: 50 }), post(origin, { stream: true }));
    if (response.kind !== 'streamed') throw new Error('not a stream');
    const chunks = response.chunks[Symbol.asyncIterator]();
    expect(String((await chunks.next()).value)).toBe('data: 1\n\n');
    await expect(chunks.next()).rejects.toMatchObject({ kind: 'timeout', phase: 'idle' });
  });

  it('fires when the whole takes too long although bytes keep coming', async () => {
    const origin = await serve((_request, response) => {
      events(response);
      const timer = setInterval(() => response.write(': more\n\n'), 10);
      response.on('close', () => clearInterval(timer));
    });
    const response = await send(open({ totalTimeoutMs: 100 }), post(origin, { stream: true }));
    await expect(readAll(response)).rejects.toMatchObject({ kind: 'timeout', phase: 'total' });
  });

  it('fires while a request waits for a connection', async () => {
    const origin = await serve(() => {});
    const transport = open({ totalTimeoutMs: 50, maxConnections: 1 });
    const both = await Promise.allSettled([send(transport, post(origin)), send(transport, post(origin))]);
    expect(both).toMatchObject([{ reason: { phase: 'total' } }, { reason: { phase: 'total' } }]);
  });

  it('fires when a TLS handshake gets no answer', async () => {
    const origin = (await serveRaw(() => {})).replace('http:', 'https:');
    const failure = send(open({ connectTimeoutMs: 50 }), post(origin));
    await expect(failure).rejects.toMatchObject({ kind: 'timeout', phase: 'connect' });
  });
});

describe('cancelling', () => {
  it('sends nothing for a caller that has already left', async () => {
    let requests = 0;
    const origin = await serve((_request, response) => {
      requests += 1;
      response.end();
    });
    await expect(send(open(), post(origin), AbortSignal.abort())).rejects.toMatchObject({ kind: 'aborted' });
    expect(requests).toBe(0);
  });

  it('cancels the upstream while headers are awaited', async () => {
    const caller = new AbortController();
    const left = Promise.withResolvers<void>();
    const origin = await serve((_request, response) => {
      response.on('close', left.resolve);
      caller.abort();
    });
    await expect(send(open(), post(origin), caller.signal)).rejects.toMatchObject({ kind: 'aborted' });
    await left.promise;
  });

  it('cancels the upstream in the midst of a stream', async () => {
    const caller = new AbortController();
    const left = Promise.withResolvers<void>();
    const origin = await serve((_request, response) => {
      response.on('close', left.resolve);
      events(response);
      response.write('data: 1\n\n');
    });
    const response = await send(open(), post(origin, { stream: true }), caller.signal);
    const reading = readAll(response);
    caller.abort();
    await expect(reading).rejects.toMatchObject({ kind: 'aborted' });
    await left.promise;
  });

  it('cancels the upstream when the reader leaves the loop', async () => {
    const left = Promise.withResolvers<void>();
    const origin = await serve((_request, response) => {
      response.on('close', left.resolve);
      events(response);
      response.write('data: 1\n\n');
    });
    const response = await send(open(), post(origin, { stream: true }));
    if (response.kind !== 'streamed') throw new Error('not a stream');
    for await (const _ of response.chunks) break;
    await left.promise;
  });

  it('lets no abort disturb an exchange that is over', async () => {
    const caller = new AbortController();
    const origin = await serve((_request, response) => response.end('{}'));
    const transport = open();
    await send(transport, post(origin), caller.signal);
    caller.abort();
    expect(await send(transport, post(origin))).toMatchObject({ status: 200 });
  });
});

describe('a stream', () => {
  it('is read as it comes', async () => {
    const go = Promise.withResolvers<void>();
    const origin = await serve(async (_request, response) => {
      events(response);
      response.write('data: 1\n\n');
      await go.promise;
      response.end('data: 2\n\n');
    });
    const response = await send(open(), post(origin, { stream: true }));
    if (response.kind !== 'streamed') throw new Error('not a stream');
    const seen: string[] = [];
    for await (const chunk of response.chunks) {
      seen.push(chunk.toString());
      go.resolve();
    }
    expect(seen).toEqual(['data: 1\n\n', 'data: 2\n\n']);
  });

  it.each([
    ['an error', 500, 'text/event-stream'],
    ['another content type', 200, 'application/json'],
    ['a type that only begins alike', 200, 'text/event-streams'],
  ])('is gathered for %s', async (_name, status, type) => {
    const origin = await serve((_request, response) => {
      response.writeHead(status, { 'content-type': type }).end('{}');
    });
    const response = await send(open(), post(origin, { stream: true }));
    expect(response).toMatchObject({ kind: 'gathered', status, text: '{}' });
  });

  it('tells its reader that it was cut', async () => {
    const origin = await serve((_request, response) => {
      events(response);
      response.write('data: 1\n\n', () => response.destroy());
    });
    const response = await send(open(), post(origin, { stream: true }));
    await expect(readAll(response)).rejects.toMatchObject({ kind: 'connection' });
  });

  it('is bounded in size', async () => {
    const origin = await serve((_request, response) => {
      events(response);
      response.end('x'.repeat(5000));
    });
    const response = await send(open({ maxResponseBytes: 1000 }), post(origin, { stream: true }));
    await expect(readAll(response)).rejects.toMatchObject({ kind: 'too_large' });
  });

  it('makes the upstream wait for a slow reader', async () => {
    const total = 64 * 1024 * 1024;
    let finished = false;
    const origin = await serve(async (_request, response) => {
      events(response);
      const chunk = Buffer.alloc(1024 * 1024, 'x');
      for (let sent = 0; sent < total; sent += chunk.length) {
        if (!response.write(chunk)) await once(response, 'drain');
      }
      finished = true;
      response.end();
    });
    const response = await send(open({ maxResponseBytes: total }), post(origin, { stream: true }));
    await sleep(300);
    expect(finished).toBe(false);
    expect((await readAll(response)).length).toBe(total);
  });

  it('keeps the connection when its reader drains it instead of leaving', async () => {
    const ports = new Set<number | undefined>();
    const origin = await serve(async (request, response) => {
      ports.add(request.socket.remotePort);
      events(response);
      response.write('data: [DONE]\n\n');
      await sleep(20);
      response.end(': the end\n\n');
    });
    const transport = open({ maxConnections: 1 });
    for (let i = 0; i < 3; i++) {
      const response = await send(transport, post(origin, { stream: true }));
      if (response.kind !== 'streamed') throw new Error('not a stream');
      for await (const _ of response.chunks) {
        response.drain();
        break;
      }
    }
    expect(ports.size).toBe(1);
  });
});

describe('the address policy', () => {
  it.each(['127.0.0.1', 'localhost'])('refuses %s for a request that may go to public addresses only', async (host) => {
    let requests = 0;
    const origin = await serve((_request, response) => {
      requests += 1;
      response.end();
    });
    const transport = open();
    const target = origin.replace('127.0.0.1', host);
    await expect(send(transport, post(target, { addresses: 'public' }))).rejects.toMatchObject({
      kind: 'connection',
      cause: undefined,
      message: 'the address is not public',
    });
    expect(requests).toBe(0);
  });

  it.each(['127.0.0.1', 'localhost'])('opens one private host on one port: %s', async (host) => {
    const origins = await Promise.all([1, 2].map(() => serve((_request, response) => response.end('{}'))));
    const [opened = '', other = ''] = origins.map((origin) => origin.replace('127.0.0.1', host));
    const transport = open({ privateExceptions: [new URL(opened).host] });
    expect(await send(transport, post(opened, { addresses: 'public' }))).toMatchObject({ status: 200 });
    const failure = send(transport, post(other, { addresses: 'public' }));
    await expect(failure).rejects.toMatchObject({ kind: 'connection', message: 'the address is not public' });
  });

  it('does not lend a trusted connection to a request that may go to public addresses only', async () => {
    const origin = await serve((_request, response) => response.end());
    const transport = open();
    expect(await send(transport, post(origin))).toMatchObject({ status: 200 });
    const failure = send(transport, post(origin, { addresses: 'public' }));
    await expect(failure).rejects.toMatchObject({ kind: 'connection' });
  });
});
