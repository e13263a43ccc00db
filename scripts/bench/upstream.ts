// The upstream of every target: one fixed answer, or a stream of fixed chunks at the pace that the request's `user` names.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { serve } from './serve.ts';
import { MODEL, STREAM_CHUNKS, STREAM_TEXT, USAGE } from './workload.ts';

const CREATED = 1_750_000_000;

const ANSWER = Buffer.from(
  JSON.stringify({
    id: 'chatcmpl-bench',
    object: 'chat.completion',
    created: CREATED,
    model: MODEL,
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content:
            'A portcullis is a heavy grating that slides down in grooves to close the gateway of a castle. It fell fast.',
          refusal: null,
        },
        logprobs: null,
        finish_reason: 'stop',
      },
    ],
    usage: USAGE,
  }),
);

const event = (choices: readonly unknown[], more = {}): Buffer => {
  const chunk = {
    id: 'chatcmpl-bench',
    object: 'chat.completion.chunk',
    created: CREATED,
    model: MODEL,
    choices,
    ...more,
  };
  return Buffer.from(`data: ${JSON.stringify(chunk)}\n\n`);
};

const DELTA = event([{ index: 0, delta: { role: 'assistant', content: STREAM_TEXT }, finish_reason: null }]);
/** About what a socket takes at once. */
const MANY_DELTAS = Buffer.concat(Array.from({ length: 64 }, () => DELTA));

const LAST = Buffer.concat([
  event([{ index: 0, delta: {}, finish_reason: 'stop' }]),
  event([], { usage: USAGE }),
  Buffer.from('data: [DONE]\n\n'),
]);

function answer(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': ANSWER.length });
  response.end(ANSWER);
}

/** A stream of so many chunks; `begin` calls its argument whenever another one is due, until it says that there is none. */
function stream(response: ServerResponse, begin: (next: () => boolean) => void, chunks = STREAM_CHUNKS): void {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  let sent = 0;
  begin(() => {
    if (response.destroyed) return false;
    if (sent === chunks) {
      response.end(LAST);
      return false;
    }
    sent += 1;
    response.write(DELTA);
    return true;
  });
}

/** A chunk in each turn of the event loop. */
function burst(next: () => boolean): void {
  if (next()) setImmediate(() => burst(next));
}

/** A chunk every so many milliseconds. Timers that come late delay no chunk but the next: the stream's time is what it is. */
function paced(next: () => boolean, paceMs: number): void {
  const start = performance.now();
  let due = 1;
  const timer = setInterval(() => {
    for (; due * paceMs <= performance.now() - start; due += 1) {
      if (next()) continue;
      clearInterval(timer);
      return;
    }
  }, paceMs);
}

/** Sends the next chunk of the one stream that waits for the client to ask. */
let sendNext: () => void = () => {};

/** The first chunk now, each further one when `/next` is asked for. */
function oneByOne(next: () => boolean): void {
  sendNext = () => void next();
  sendNext();
}

/** Chunks as fast as they are taken, for as long as someone does. */
function endless(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  const flow = (): void => {
    while (!response.destroyed && response.write(MANY_DELTAS));
  };
  response.on('drain', flow);
  flow();
}

function serveKind(kind: string | undefined, response: ServerResponse): void {
  const [, pace] = /^every (\d+) ms$/.exec(kind ?? '') ?? [];
  const [, chunks] = /^(\d+) chunks, one by one$/.exec(kind ?? '') ?? [];
  if (kind === undefined) answer(response);
  else if (chunks !== undefined) stream(response, oneByOne, Number(chunks));
  else if (kind === 'endless') endless(response);
  else stream(response, pace === undefined ? burst : (next) => paced(next, Number(pace)));
}

const server = createServer((request: IncomingMessage, response: ServerResponse) => {
  if (request.url === '/next') {
    sendNext();
    response.end();
    return;
  }
  const body: Buffer[] = [];
  request.on('data', (chunk: Buffer) => body.push(chunk));
  request.on('end', () => serveKind(/"user":"([^"]*)"/.exec(Buffer.concat(body).toString('latin1'))?.[1], response));
});
serve(server);
